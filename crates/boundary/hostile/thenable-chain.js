// expect: HOOK_CPU_LIMIT
// Each value is one more promise.
function f(ctx) {
  const next = () => ({ then(resolve) { resolve(next()) } });
  return next()
}
