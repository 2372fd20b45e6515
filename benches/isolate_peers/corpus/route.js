const ROUTES = { billing: ["invoice", "refund", "charge"], travel: ["flight", "hotel", "train"], desk: [] };
class Router {
  constructor(routes) { this.routes = Object.entries(routes); }
  score(text) {
    const words = new Set(text.toLowerCase().match(/[a-z]+/g) ?? []);
    return this.routes.map(([agent, keys]) => [agent, keys.filter((key) => words.has(key)).length]);
  }
}
function Create(ctx, messages, options) {
  const best = new Router(ROUTES).score(messages.map((m) => m.content).join(" ")).sort((a, b) => b[1] - a[1])[0];
  return best[1] > 0 ? { delegate: { agent_id: best[0], messages } } : { metadata: { route: "none" } };
}
