// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// A map.
function f(ctx) {
  const m = new Map();
  for (let i = 0; ; i++) m.set(i, 'v' + i)
}
