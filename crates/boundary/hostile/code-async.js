// expect: HOOK_THREW
// Makes code from text.
function f(ctx) {
  return (async () => {}).constructor('return 1')()
}
