// expect: HOOK_CALLBACK_LIMIT
// A callback that spins.
function f(ctx) {
  ctx.llm.Stream('m', [], { onChunk() { for (;;) {} } })
}
