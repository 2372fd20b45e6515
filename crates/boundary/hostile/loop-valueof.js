// expect: HOOK_CPU_LIMIT
// Spins while it is converted.
function f(ctx) {
  return 1 + { valueOf() { for (;;) {} } }
}
