// expect: HOOK_THREW
// Too few arguments.
function f(ctx) {
  ctx.mcp.CallTool()
}
