// expect: HOOK_HEAP_LIMIT
// One huge array buffer.
function f(ctx) {
  return new ArrayBuffer(64 << 20).byteLength
}
