// expect: HOOK_THREW
// Makes code from text.
function f(ctx) {
  return new Function('return 1')()
}
