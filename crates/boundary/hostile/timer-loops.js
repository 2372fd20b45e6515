// expect: HOOK_CPU_LIMIT
// A timer that never returns.
async function f() {
  await new Promise(() => setTimeout(() => { for (;;) { try { for (;;) {} } finally { continue; } } }, 1));
}
