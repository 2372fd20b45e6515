// expect: HOOK_THREW
// Leaves with operations under way.
async function f(ctx) {
  ctx.slowAsync();
  ctx.slowAsync();
  throw new Error("gone");
}
