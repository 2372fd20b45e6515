// expect: HOOK_THREW
// More random bytes than there may be.
function f() {
  crypto.getRandomValues(new Uint8Array(1 << 20));
}
