// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT|HOOK_THREW
// Encodes texts until there is no room.
function f() {
  const all = [], text = 'é'.repeat(1 << 16);
  for (;;) all.push(new TextEncoder().encode(text), new TextDecoder().decode(all[all.length - 1]));
}
