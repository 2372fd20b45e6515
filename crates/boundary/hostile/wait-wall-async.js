// expect: HOOK_WALL_LIMIT
// The same with a promise.
async function f(ctx) {
  await ctx.slowAsync();
}
