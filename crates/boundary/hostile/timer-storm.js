// expect: HOOK_PENDING_LIMIT
// Sets timers without end.
function f() {
  for (;;) setTimeout(() => {}, 1e9);
}
