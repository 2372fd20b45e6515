// expect: HOOK_THREW
// A callback that throws.
function f(ctx) {
  ctx.llm.Stream('m', [], { onChunk() { throw new Error('no') } })
}
