// expect: HOOK_THREW
// A delay that throws when it is read.
function f() {
  setTimeout(() => {}, { valueOf() { throw new Error('read') } });
}
