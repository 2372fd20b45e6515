// expect: HOOK_THREW
// A callback that releases ctx.
function f(ctx) {
  ctx.llm.Stream('m', [], { onChunk() { ctx.Release() } });
  ctx.Send('x')
}
