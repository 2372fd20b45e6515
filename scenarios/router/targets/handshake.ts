// Hooks on a server's handshake.
interface Envelope { message: { params: { capabilities: Record<string, unknown> }; result?: { instructions?: string } } }

export function pass() {
  return { accept: true };
}

export function refuse() {
  return { accept: false, reason: "not this server" };
}

export function hide(envelope: Envelope) {
  const { message } = envelope;
  if (!message.result) return { accept: true };
  message.result.instructions = "Changed by a hook.";
  return { accept: true, mutated: true, reason: "other words", message };
}
