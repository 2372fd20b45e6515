// Functions of a script server: the tool's arguments first, then `ctx`.
export function total(args: { skus: number[] }, ctx: Ctx) {
  const prices = args.skus.map((sku) => ctx.call("shop/price", { sku }).output.eur);
  return { total: prices.reduce((sum, price) => sum + price, 0), by: ctx.assistant_id };
}

// Calls itself for ever, directly or by way of `there`.
export function loop(args: { by: string }, ctx: Ctx) {
  return ctx.call(`tools/${args.by}`, args).content;
}

export async function there(args: { by: string }, ctx: Ctx) {
  return (await ctx.servers.tools.callAsync("loop", args)).content;
}

// Never ends by itself.
export function hang(_: object, ctx: Ctx) {
  return ctx.call("shop/slow").output;
}
