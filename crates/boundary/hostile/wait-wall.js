// expect: HOOK_WALL_LIMIT
// Waits for a host that does not answer.
function f(ctx) {
  ctx.slow()
}
