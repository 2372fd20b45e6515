// expect: HOOK_PENDING_LIMIT
// Requests without end, none awaited.
function f() {
  for (;;) fetch('https://slow.example/').catch(() => {});
}
