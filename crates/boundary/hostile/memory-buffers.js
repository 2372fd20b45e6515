// expect: HOOK_HEAP_LIMIT
// Array buffers, which lie outside the heap.
function f(ctx) {
  const all = [];
  for (;;) all.push(new ArrayBuffer(1 << 20))
}
