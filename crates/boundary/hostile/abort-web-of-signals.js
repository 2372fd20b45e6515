// expect: ok|HOOK_CPU_LIMIT|HOOK_HEAP_LIMIT
// Signals that follow signals that follow signals.
function f() {
  const c = new AbortController();
  let all = [c.signal];
  for (let i = 0; i < 300; i++) all.push(AbortSignal.any(all.slice(-20)));
  c.abort();
  return all.every((signal) => signal.aborted);
}
