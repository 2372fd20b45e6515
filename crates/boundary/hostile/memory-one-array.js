// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// One huge array.
function f(ctx) {
  return new Array(30000000).fill(7).length
}
