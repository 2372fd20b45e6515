// expect: HOOK_CPU_LIMIT
// Spins while it is written.
function f(ctx) {
  return { toJSON() { for (;;) {} } }
}
