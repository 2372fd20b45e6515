// Hook targets that make something else of a message.
interface Envelope { accept: boolean; mutated: boolean; reason: string; message: any }

const changed = (envelope: Envelope, parts: object) => ({ ...envelope, mutated: true, message: { ...envelope.message, ...parts } });

export function without_result(envelope: Envelope) { return changed(envelope, { result: null }); }
export function with_both(envelope: Envelope) { return changed(envelope, { error: { code: 1, message: "too" } }); }

export function without_params(envelope: Envelope) { return changed(envelope, { params: null }); }
export function list_of_arguments(envelope: Envelope) { return changed(envelope, { params: { name: "stock", arguments: [] } }); }
export function name_that_is_a_number(envelope: Envelope) { return changed(envelope, { params: { name: 7, arguments: {} } }); }

export function other_tool(envelope: Envelope) {
  return changed(envelope, { params: { ...envelope.message.params, name: "sell" } });
}

/** Gives the message back as it read it. */
export function looks(envelope: Envelope) { return { ...envelope, mutated: true }; }
export function sets_a_sibling(envelope: Envelope) {
  envelope.message.params.arguments.sibling = true;
  return { ...envelope, mutated: true };
}

const unknown = (result: any) => [result.content[0]["x-colour"], result["x-lot"].n, result._meta["example.test/trace"]];
export function knows_the_unknown(envelope: Envelope) {
  const result = envelope.message.result;
  result.structuredContent.seen = unknown(result);
  return { ...envelope, mutated: true };
}
export function finds_the_unknown(envelope: Envelope) {
  return { accept: String(unknown(envelope.message.result)) === "blue,7,abc", reason: "something was lost" };
}

export function shows_the_error(envelope: Envelope) {
  const { error, ...message } = envelope.message;
  return { accept: true, mutated: true, message: { ...message, result: { content: [], structuredContent: error } } };
}
