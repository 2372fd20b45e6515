// expect: HOOK_CPU_LIMIT
// An iterator without an end.
function f(ctx) {
  function* forever() { for (;;) yield 1 }
  for (const _ of forever()) {}
}
