// A hook that leaves its globals broken, and one that needs them whole.
interface Envelope { message: { params: { arguments: { n: number } } } }

export function poison(envelope: Envelope) {
  const world = globalThis as any;
  world.secret = envelope.message.params.arguments.n;
  (Object.prototype as any).accept = true;
  Array.prototype.map = () => ["poison"] as any;
  JSON.stringify = () => '{"accept":false}';
  Promise.prototype.then = function () { return this as any; };
  return { mutated: false };
}

export function judge(envelope: Envelope) {
  const whole = (globalThis as any).secret === undefined
    && !("accept" in {})
    && [1].map((n) => n + 1)[0] === 2
    && JSON.stringify([1]) === "[1]";
  return { accept: whole && envelope.message.params.arguments.n > 0, reason: "something was left behind" };
}
