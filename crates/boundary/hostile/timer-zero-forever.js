// expect: HOOK_CPU_LIMIT|HOOK_WALL_LIMIT
// A timer of no time sets itself again: time never passes.
async function f() {
  const again = () => setTimeout(again);
  again();
  await new Promise(() => {});
}
