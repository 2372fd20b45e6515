// expect: HOOK_CPU_LIMIT
// A comparator that spins.
function f(ctx) {
  return [3, 1, 2].sort(() => { for (;;) {} })
}
