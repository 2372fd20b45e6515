// expect: ok
// A setter where the bridge writes.
function f(ctx) {
  Object.defineProperty(Object.prototype, 'code', { set() { for (;;) {} }, configurable: true });
  try { ctx.fail() } catch (e) { return e.code === 'ERR_TEST' }
}
