// Hook targets `policy/cap` and `policy/judge`: nanobot's envelope in and out.
interface Envelope {
  accept: boolean;
  mutated: boolean;
  reason: string;
  message: { params: { arguments: { count: number } } };
}

export function cap(envelope: Envelope): Envelope {
  const args = envelope.message.params.arguments;
  if (args.count <= 10) return envelope;
  args.count = 10;
  return { ...envelope, mutated: true, reason: "at most ten at a time" };
}

export function judge(envelope: Envelope) {
  return { accept: envelope.message.params.arguments.count <= 10, reason: "too many" };
}
