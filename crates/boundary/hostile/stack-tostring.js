// expect: HOOK_THREW
// Converts itself for ever.
function f(ctx) {
  const o = { toString() { return '' + o } };
  return '' + o
}
