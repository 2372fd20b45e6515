// expect: ok
// Leaves timers behind.
function f(ctx) {
  setTimeout(() => ctx.Send('late'), 0);
  setInterval(() => ctx.Send('late'), 1);
  queueMicrotask(() => setTimeout(() => ctx.Send('late'), 0));
}
