// expect: HOOK_VALUE_LIMIT|HOOK_CPU_LIMIT|HOOK_HEAP_LIMIT|HOOK_THREW
// A body larger than any value may be.
async function f() {
  await fetch('https://a.example/', { method: 'POST', body: 'x'.repeat(1 << 20) });
}
