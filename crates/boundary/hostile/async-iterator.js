// expect: HOOK_CPU_LIMIT
// An asynchronous iterator without an end.
async function* forever() { for (;;) yield 1 }
async function f() {
  for await (const _ of forever()) {}
}
