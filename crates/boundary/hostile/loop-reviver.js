// expect: HOOK_CPU_LIMIT
// A reviver that spins.
function f(ctx) {
  return JSON.parse('[1]', () => { for (;;) {} })
}
