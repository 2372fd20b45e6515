// expect: HOOK_THREW
// A method of a group on ctx itself.
function f(ctx) {
  ctx.mcp.CallTool.call(ctx, 's', 't')
}
