// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// Closures.
function f(ctx) {
  let g = () => 1;
  for (;;) { const h = g; g = () => h }
}
