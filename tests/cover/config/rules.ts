// Hook targets of the tests.
interface Envelope { message: { params: { arguments: { count?: number } } } }

export function cap(envelope: Envelope) {
  const args = envelope.message.params.arguments;
  if (!args.count || args.count <= 10) return { accept: true };
  args.count = 10;
  return { accept: true, mutated: true, message: envelope.message, reason: "at most ten" };
}

export function log() {}

export function judge(envelope: Envelope) {
  return { accept: envelope.message.params.arguments.count !== 0, reason: "none is not an order" };
}
