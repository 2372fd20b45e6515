// expect: HOOK_CPU_LIMIT
// Never returns.
function f(ctx) {
  for (;;) {}
}
