// expect: HOOK_THREW|HOOK_NOT_JSON|HOOK_VALUE_LIMIT|HOOK_HEAP_LIMIT
// A value nested too deep to be written.
function f(ctx) {
  let v = [];
  for (let i = 0; i < 200000; i++) v = [v];
  return v
}
