// expect: ok|HOOK_CPU_LIMIT|HOOK_HEAP_LIMIT
// Base64 of a giant text, and back, again and again.
function f() {
  let text = 'x'.repeat(1 << 18);
  for (let i = 0; i < 6; i++) text = btoa(text);
  return atob(text).length > 0;
}
