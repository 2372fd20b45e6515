// expect: HOOK_CPU_LIMIT|HOOK_WALL_LIMIT
// An interval that nobody clears, in a hook that waits for ever.
async function f(ctx) {
  setInterval(() => {}, 0);
  await new Promise(() => {});
}
