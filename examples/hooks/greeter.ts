// A hook-only agent: no model, only code.
interface Message {
  role: string;
  content?: string;
}

export function Next(ctx: any, payload: { messages: Message[] }) {
  const said = payload.messages[payload.messages.length - 1]?.content ?? "";
  const name = said.replace(/^(hello|hi),?\s+(i am|i'm)\s+/i, "").trim() || "stranger";
  ctx.Send(`Hello, ${name}!`);
  return { data: { greeting: `Hello, ${name}!` } };
}
