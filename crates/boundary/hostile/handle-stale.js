// expect: HOOK_THREW
// Uses ctx after its release.
function f(ctx) {
  ctx.Release();
  ctx.Send('x')
}
