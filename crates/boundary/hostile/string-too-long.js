// expect: HOOK_THREW
// Longer than any string.
function f(ctx) {
  return 'x'.repeat(2 ** 30)
}
