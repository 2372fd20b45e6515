// expect: HOOK_VALUE_LIMIT
// An argument over the limit of one value.
function f(ctx) {
  ctx.Send('x'.repeat(1 << 20))
}
