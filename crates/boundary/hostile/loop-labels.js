// expect: HOOK_CPU_LIMIT
// Jumps between loops.
function f(ctx) {
  a: for (;;) { b: for (;;) { continue a } }
}
