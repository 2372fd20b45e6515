// expect: HOOK_CPU_LIMIT
// `toJSON` on every object.
function f(ctx) {
  Object.prototype.toJSON = () => { for (;;) {} };
  return ctx.Send({})
}
