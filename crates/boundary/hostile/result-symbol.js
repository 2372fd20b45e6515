// expect: HOOK_NOT_JSON
// A value that JSON does not have.
function f(ctx) {
  return Symbol('x')
}
