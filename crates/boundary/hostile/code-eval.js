// expect: HOOK_THREW
// Makes code from text.
function f(ctx) {
  return eval('1 + 1')
}
