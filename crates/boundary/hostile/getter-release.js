// expect: HOOK_THREW
// Releases ctx while an argument is read.
function f(ctx) {
  ctx.Append('m', { get x() { ctx.Release(); return 1 } });
  ctx.Send('after')
}
