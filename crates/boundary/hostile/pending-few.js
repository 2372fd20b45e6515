// expect: HOOK_PENDING_LIMIT
// More at once than it may.
async function f(ctx) {
  const all = [];
  for (let i = 0; i < 40; i++) all.push(ctx.mcp.CallToolAsync("s", "t"));
  await Promise.all(all);
}
