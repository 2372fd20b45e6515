// expect: HOOK_CPU_LIMIT
// A getter for `then`.
function f(ctx) {
  return { get then() { for (;;) {} } }
}
