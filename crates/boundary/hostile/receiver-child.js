// expect: HOOK_THREW
// A method on an object made from ctx.
function f(ctx) {
  Object.create(ctx).Send('x')
}
