// Tries each tool, and the other agent.
const attempt = (work: () => any): unknown => {
  try {
    return work();
  } catch (e: any) {
    return `${e.code} ${/rule `(.*): deny`/.exec(e.message)?.[1] ?? ""}`;
  }
};

export function Next(ctx: Ctx) {
  return {
    data: {
      pay: attempt(() => ctx.call("bank/pay").output),
      rate: attempt(() => ctx.call("bank/rate").output),
      payer: attempt(() => ctx.call("payer", "go").output),
    },
  };
}
