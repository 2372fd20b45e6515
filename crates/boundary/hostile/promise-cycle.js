// expect: HOOK_NEVER_SETTLES
// Two promises wait for each other.
async function f() {
  let a;
  const b = new Promise(resolve => { a = resolve });
  const c = b.then(() => d);
  const d = c.then(() => c);
  return d;
}
