// expect: HOOK_NOT_JSON
// A value that JSON does not have.
function f(ctx) {
  return 10n ** 30n
}
