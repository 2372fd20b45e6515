// expect: HOOK_UNHANDLED_REJECTION|HOOK_CPU_LIMIT|HOOK_THREW|ok
// A listener that sends its own event again.
function f() {
  const target = new EventTarget();
  target.addEventListener('go', () => target.dispatchEvent(new Event('go')));
  target.dispatchEvent(new Event('go'));
}
