// expect: HOOK_LOAD
// Does not parse.
function f( {
