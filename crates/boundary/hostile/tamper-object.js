// expect: ok
// Replaces reflection.
function f(ctx) {
  Object.defineProperty = Object.keys = Object.getPrototypeOf = () => { throw new Error('mine') };
  Reflect.apply = Reflect.ownKeys = Object.defineProperty;
  return ctx.Send({ a: 1 }).id === 1
}
