// expect: HOOK_THREW
// A method on nothing.
function f(ctx) {
  const { Send } = ctx;
  Send('x')
}
