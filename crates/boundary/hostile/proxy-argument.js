// expect: HOOK_THREW
// A trap that throws while an argument is read.
function f(ctx) {
  ctx.Send(new Proxy({}, { ownKeys() { throw new Error('trap') } }))
}
