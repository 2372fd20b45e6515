// expect: HOOK_CPU_LIMIT|HOOK_OUTPUT_LIMIT
// Asks for ids for ever.
function f() {
  for (;;) try { crypto.randomUUID() } catch {}
}
