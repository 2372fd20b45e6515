// expect: HOOK_CPU_LIMIT
// Backtracks for ever.
function f(ctx) {
  return /^(a+)+$/.test('a'.repeat(60) + 'b')
}
