// expect: HOOK_THREW
// A trap that asks itself.
function f(ctx) {
  const p = new Proxy({}, { get: (t, k, r) => r[k] });
  return p.x
}
