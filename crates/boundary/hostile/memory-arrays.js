// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// Arrays.
function f(ctx) {
  const all = [];
  for (;;) all.push(new Array(100000).fill(1.5))
}
