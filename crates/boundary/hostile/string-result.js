// expect: HOOK_VALUE_LIMIT
// A result over the limit of one value.
function f(ctx) {
  return 'x'.repeat(1 << 20)
}
