// expect: HOOK_CPU_LIMIT
// Backtracks behind a lookahead.
function f(ctx) {
  return /^((?=(a+))\2)*(a+)+b/.test('a'.repeat(60))
}
