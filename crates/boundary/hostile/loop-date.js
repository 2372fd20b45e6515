// expect: HOOK_CPU_LIMIT
// Waits for a clock that stands still.
function f(ctx) {
  const end = Date.now() + 60000;
  while (Date.now() < end) {}
}
