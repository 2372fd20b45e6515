// expect: HOOK_NEVER_SETTLES
// Nothing will settle it.
function f() {
  return new Promise(() => {});
}
