// expect: HOOK_CPU_LIMIT|HOOK_HEAP_LIMIT
// Each job queues two.
async function f() {
  const grow = () => Promise.all([null, null].map(() => Promise.resolve().then(grow)));
  await grow();
}
