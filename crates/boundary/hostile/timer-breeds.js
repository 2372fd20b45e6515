// expect: HOOK_PENDING_LIMIT|HOOK_CPU_LIMIT|HOOK_WALL_LIMIT
// Each timer sets two more.
async function f() {
  const two = () => { setTimeout(two, 0); setTimeout(two, 0); };
  two();
  await new Promise(() => {});
}
