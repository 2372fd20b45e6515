// expect: ok
// Replaces the error classes.
function f(ctx) {
  globalThis.Error = globalThis.RangeError = class { constructor() { for (;;) {} } };
  try { ctx.fail() } catch (e) { return e.code === 'ERR_TEST' }
}
