// expect: HOOK_CPU_LIMIT
// A proxy as the error.
function f(ctx) {
  throw new Proxy({}, { get() { for (;;) {} } })
}
