// expect: HOOK_HEAP_LIMIT|HOOK_THREW
// Copies buffers until there is no room.
function f() {
  const all = [];
  for (let buffer = new ArrayBuffer(1 << 20); ;) all.push(structuredClone(buffer));
}
