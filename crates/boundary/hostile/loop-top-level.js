// expect: HOOK_CPU_LIMIT
// Never gets through its top level.
for (;;) {}
function f() {}
