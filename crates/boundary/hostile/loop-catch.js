// expect: HOOK_CPU_LIMIT
// Catches all it can, the stop included.
function f(ctx) {
  for (;;) {
    try { null.x } catch {}
  }
}
