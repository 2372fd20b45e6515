// expect: HOOK_CPU_LIMIT
// Awaits for ever.
async function f() {
  for (;;) await null;
}
