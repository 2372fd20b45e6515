// expect: HOOK_THREW
// A getter in place of a callback.
function f(ctx) {
  ctx.llm.Stream('m', [], { get onChunk() { throw new Error('not yours') } })
}
