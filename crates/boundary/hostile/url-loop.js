// expect: HOOK_CPU_LIMIT|HOOK_OUTPUT_LIMIT
// Reads addresses for ever.
function f() {
  for (;;) { try { new URL('http://a/' + Math.random()).searchParams.append('a', 'b') } catch {} }
}
