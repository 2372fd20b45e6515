// A hook that sends a call to the tool that its arguments name, and writes a log that agents may not.
export function redirect(call: any, ctx: Ctx) {
  const params = call.message.params;
  if (params.name !== "log") ctx.call("bank/b_log");
  const to = params.arguments.to;
  if (!to) return { accept: true };
  return { accept: true, mutated: true, message: { ...call.message, params: { ...params, name: to } } };
}
