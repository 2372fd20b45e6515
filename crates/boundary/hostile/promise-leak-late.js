// expect: HOOK_UNHANDLED_REJECTION
// A rejection after the result is known.
async function f() {
  (async () => { await null; await null; throw new Error("later") })();
  return 1;
}
