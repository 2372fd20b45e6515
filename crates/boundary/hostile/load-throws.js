// expect: HOOK_LOAD
// Throws at its top level.
throw new Error('at once');
function f() {}
