// expect: HOOK_UNHANDLED_REJECTION
// A rejection that nobody handles.
function f(ctx) {
  Promise.reject(new Error('nobody looks'));
  return 1
}
