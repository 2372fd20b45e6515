// expect: HOOK_THREW
// An error that causes itself.
function f(ctx) {
  const e = new Error('a');
  e.cause = e;
  throw e
}
