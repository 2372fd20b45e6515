// expect: HOOK_THREW|HOOK_VALUE_LIMIT
// An address that is longer than any may be.
function f() {
  new URL('http://a/' + 'x'.repeat(2 << 20));
}
