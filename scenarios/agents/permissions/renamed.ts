// Tries a denied tool by each of its names, and by way of a hook that sends the call elsewhere.
const call = (ctx: Ctx, tool: string, to?: string): unknown => {
  try {
    return ctx.call(`bank/${tool}`, { to }).output;
  } catch (e: any) {
    return `${e.code} ${/rule `(.*): deny`/.exec(e.message)?.[1] ?? ""}`;
  }
};

export function Next(ctx: Ctx) {
  return {
    data: [
      ctx.mcp.ListTools("bank").tools.map((tool) => tool.name),
      call(ctx, "b_harmless"),
      call(ctx, "b_price"),
      call(ctx, "rate"),
      call(ctx, "b_pay"),
      call(ctx, "b_note"),
      call(ctx, "b_note", "pay"),
    ],
  };
}
