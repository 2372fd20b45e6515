// expect: ok|HOOK_NOT_JSON
// Hands out ctx as a value.
function f(ctx) {
  return { toJSON() { return ctx } }
}
