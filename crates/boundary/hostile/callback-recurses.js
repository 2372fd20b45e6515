// expect: HOOK_PENDING_LIMIT|HOOK_THREW|HOOK_CPU_LIMIT
// Each callback starts one more.
function f(ctx) {
  const again = () => ctx.llm.Stream('m', [], { onChunk: again });
  again()
}
