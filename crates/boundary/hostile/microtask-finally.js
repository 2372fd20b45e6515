// expect: HOOK_CPU_LIMIT
// Starts over in `finally`.
async function inner() { await null; try { for (;;) {} } finally { return inner() } }
async function f() {
  for (;;) { try { await inner() } catch {} }
}
