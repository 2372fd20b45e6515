// expect: HOOK_CPU_LIMIT
// A proxy as the result.
function f(ctx) {
  return new Proxy({}, { ownKeys() { for (;;) {} } })
}
