// expect: HOOK_NOT_JSON
// A value that contains itself.
function f(ctx) {
  const a = {};
  a.a = a;
  return a
}
