// expect: HOOK_OUTPUT_LIMIT
// Floods the log.
function f(ctx) {
  const line = 'x'.repeat(100000);
  for (;;) console.log(line)
}
