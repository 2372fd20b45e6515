// expect: HOOK_CPU_LIMIT
// Returns, and goes on in the background.
function f(ctx) {
  const queue = () => { Promise.resolve().then(queue) };
  queue();
  return 1
}
