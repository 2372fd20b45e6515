// expect: HOOK_HEAP_LIMIT
// Typed arrays.
function f(ctx) {
  const all = [];
  for (;;) all.push(new Float64Array(100000))
}
