// The soak's script server: a tool, and a validator for the calls of another server.
export function add(args: { a: number; b: number }) {
  return { structuredContent: { sum: args.a + args.b }, content: [] };
}

export function known(call: { message: { params: { arguments: { number?: string } } } }) {
  const number = call.message.params.arguments.number ?? "";
  return number.startsWith("A-") ? { accept: true } : { accept: false, reason: "unknown number" };
}
