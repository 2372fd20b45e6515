// expect: HOOK_THREW|HOOK_CPU_LIMIT|HOOK_HEAP_LIMIT
// Copies something too deep to be copied.
function f() {
  let deep = null;
  for (let i = 0; i < 200000; i++) deep = { deep };
  structuredClone(deep);
}
