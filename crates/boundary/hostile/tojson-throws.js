// expect: HOOK_THREW
// Throws while it is written.
function f(ctx) {
  ctx.Send({ toJSON() { throw new RangeError('no') } })
}
