// expect: HOOK_CPU_LIMIT
// Doubles its way out of the overflow.
function f(ctx) {
  function g() { try { g() } finally { g() } }
  g()
}
