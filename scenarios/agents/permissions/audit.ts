// A hook that has another agent look at a call.
export function ask(_: object, ctx: Ctx) {
  const seen = ctx.call("payer", "go").output;
  return { accept: seen.rate === "CALL_DENIED bank/rate" && seen.pay === "paid" };
}
