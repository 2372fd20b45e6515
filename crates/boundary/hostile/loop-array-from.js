// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// Collects from an iterator without an end.
function f(ctx) {
  return Array.from({ [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }, () => 0)
}
