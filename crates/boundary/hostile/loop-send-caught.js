// expect: HOOK_CPU_LIMIT
// Asks the host for ever.
function f(ctx) {
  for (;;) { try { ctx.failNow() } catch {} }
}
