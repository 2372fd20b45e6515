// expect: HOOK_THREW|HOOK_CPU_LIMIT
// Comes back into the host while an argument is read.
function f(ctx) {
  let depth = 0;
  const o = { get x() { depth++; return ctx.Send(depth < 1000000 ? o : 1) } };
  ctx.Send(o)
}
