// expect: HOOK_THREW|HOOK_CPU_LIMIT
// Formats stacks for ever.
function f(ctx) {
  Error.prepareStackTrace = () => { for (;;) {} };
  null.x
}
