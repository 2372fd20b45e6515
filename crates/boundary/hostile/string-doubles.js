// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// A string that doubles.
function f(ctx) {
  let s = 'x';
  const all = [];
  for (;;) { s += s + 'é漢'; all.push(s.split('')) }
}
