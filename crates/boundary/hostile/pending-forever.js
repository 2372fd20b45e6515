// expect: HOOK_PENDING_LIMIT
// Starts operations and awaits none.
async function f(ctx) {
  for (;;) ctx.slowAsync();
}
