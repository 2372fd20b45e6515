// expect: HOOK_THREW
// A method as a constructor.
function f(ctx) {
  new ctx.Send('x')
}
