// Small hook targets for the scenarios beside this folder.
interface Envelope { accept: boolean; mutated: boolean; reason: string; message: { params: { arguments: any }; result?: any; error?: any } }

/** Moves a path from /a to /b. */
export function fix(envelope: Envelope) {
  envelope.message.params.arguments.path = "/b";
  return { ...envelope, mutated: true, reason: "moved" };
}

export function accept() { return { accept: true }; }
export function nothing() {}
export function empty() { return {}; }

/** An unmarked message, which is not the current one. */
export function unmarked(envelope: Envelope) {
  const message = JSON.parse(JSON.stringify(envelope.message));
  message.params.arguments.path = "/a";
  return { accept: true, mutated: false, message };
}

/** A marked message that is no call. */
export function partial() { return { accept: true, mutated: true, message: { params: { arguments: { mode: "x" } } } }; }

export function refuse() { return { accept: false, reason: "not allowed" }; }

/** Writes its own name behind a trail, so that the order of a chain can be read. */
function trail(name: string, envelope: Envelope) {
  const args = envelope.message.params.arguments;
  args.trail = [...(args.trail ?? []), name];
  return { ...envelope, mutated: true, reason: name };
}
export function one(envelope: Envelope) { return trail("one", envelope); }
export function two(envelope: Envelope) { return trail("two", envelope); }
export function three(envelope: Envelope) { return trail("three", envelope); }
export function four(envelope: Envelope) { return trail("four", envelope); }

/** Turns an error into a result. */
export function rescue(envelope: Envelope) {
  const { error, ...message } = envelope.message;
  if (!error) return { accept: true };
  return { accept: true, mutated: true, message: { ...message, result: { structuredContent: { rescued: error.code } } } };
}

export function fail() { throw new Error("broken"); }

/** Answers a turn in the model's place. */
export function answer(turn: any) {
  return { ...turn, response: { message: { role: "assistant", content: "From the cache." }, finish_reason: "stop" } };
}

/** A result that is none. */
export function boom(envelope: Envelope) { return { ...envelope, mutated: true, message: { ...envelope.message, result: "boom" } }; }
