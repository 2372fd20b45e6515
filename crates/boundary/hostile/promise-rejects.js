// expect: HOOK_THREW
// An ordinary failure.
async function f() {
  await null;
  throw new TypeError("no");
}
