// Hooks of the host, which look at outside clients.
interface Session { sessionId: string }
interface Envelope {
  message: {
    params: { arguments: { count: number } };
    result?: { content: unknown[] };
    error?: { message: string };
  };
}

export function admit(session: Session) {
  return session.sessionId === "s1" ? { accept: true } : { accept: false, reason: `${session.sessionId} is not known` };
}

export function cap(envelope: Envelope) {
  const { message } = envelope;
  if (message.params.arguments.count > 100) return { accept: false, reason: "more than there is" };
  message.params.arguments.count = 1;
  return { accept: true, mutated: true, reason: "one each", message };
}

export function soften(envelope: Envelope) {
  const { message } = envelope;
  if (!message.error) return { accept: true };
  const result = { content: [{ type: "text", text: `Not now: ${message.error.message}` }] };
  return { accept: true, mutated: true, message: { result } };
}
