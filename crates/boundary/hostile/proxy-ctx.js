// expect: HOOK_THREW
// A proxy in place of ctx.
function f(ctx) {
  new Proxy(ctx, {}).Send('x')
}
