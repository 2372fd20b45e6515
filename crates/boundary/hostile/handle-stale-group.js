// expect: HOOK_THREW
// Uses a group after the release.
function f(ctx) {
  const { memory } = ctx;
  ctx.Release();
  memory.context.Get('k')
}
