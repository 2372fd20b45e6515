// Hook targets whose answers come by a promise.
interface Envelope { accept: boolean; mutated: boolean; message: { params: { arguments: any } } }

export async function refuses_later() {
  await null;
  return { accept: false, reason: "after all" };
}
export async function number_later() {
  await null;
  return 7;
}
export async function throws_later() {
  await null;
  throw new Error("broken");
}
export function changes_later(envelope: Envelope) {
  return Promise.resolve().then(() => {
    envelope.message.params.arguments.later = true;
    return { ...envelope, mutated: true };
  });
}
