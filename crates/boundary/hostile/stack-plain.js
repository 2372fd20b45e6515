// expect: HOOK_THREW
// Calls itself for ever.
function f(ctx) {
  const g = () => g();
  g()
}
