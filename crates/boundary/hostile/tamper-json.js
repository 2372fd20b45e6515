// expect: ok
// Replaces JSON.
function f(ctx) {
  JSON.stringify = JSON.parse = () => { throw new Error('mine') };
  return ctx.Send({ a: 1 }).id === 1
}
