// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// Small objects.
function f(ctx) {
  const all = [];
  for (;;) all.push({ x: [1, 2, 3] })
}
