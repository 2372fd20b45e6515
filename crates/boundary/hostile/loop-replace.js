// expect: HOOK_CPU_LIMIT
// A replacer that spins.
function f(ctx) {
  return 'aaa'.replace(/a/g, () => { for (;;) {} })
}
