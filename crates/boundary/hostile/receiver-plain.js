// expect: HOOK_THREW
// A method on a plain object.
function f(ctx) {
  ctx.Send.call({}, 'x')
}
