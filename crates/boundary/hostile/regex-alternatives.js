// expect: HOOK_CPU_LIMIT
// Backtracks over alternatives.
function f(ctx) {
  return /^(a|a|a|aa)+$/.test('a'.repeat(60) + 'b')
}
