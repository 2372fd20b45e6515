// expect: ok
// Replaces what the bridge could lean on.
function f(ctx) {
  Array.prototype[Symbol.iterator] = function () { throw new Error('mine') };
  Array.prototype.push = () => { for (;;) {} };
  return ctx.Send('x').id === 1
}
