// expect: HOOK_THREW
// Throws nothing.
function f(ctx) {
  throw undefined
}
