// expect: HOOK_CPU_LIMIT
// Goes on in `finally`.
function f(ctx) {
  for (;;) {
    try { for (;;) {} } finally { continue }
  }
}
