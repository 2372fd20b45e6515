// expect: HOOK_OUTPUT_LIMIT
// Floods the host with messages.
function f(ctx) {
  const line = 'x'.repeat(100000);
  for (;;) ctx.Send(line)
}
