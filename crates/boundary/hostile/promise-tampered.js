// expect: HOOK_THREW|ok
// Replaces `then` for everybody.
function f(ctx) {
  Promise.prototype.then = function () { throw new Error('mine') };
  return Promise.resolve(1)
}
