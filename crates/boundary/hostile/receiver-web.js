// expect: ok
// Methods of the web on the wrong receivers.
function f() {
  const tries = [
    () => URL.prototype.toString.call({}), () => Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted').get.call({}),
    () => AbortController.prototype.abort.call(new EventTarget()), () => Headers.prototype.get.call(new Map(), 'a'), () => AbortSignal.any([{}]),
    () => Reflect.construct(AbortSignal, [], Object), () => TextDecoder.prototype.decode.call(null), () => new EventTarget().dispatchEvent({ type: 'x' }),
  ];
  return tries.every((run) => { try { run(); return false } catch (e) { return e instanceof TypeError } });
}
