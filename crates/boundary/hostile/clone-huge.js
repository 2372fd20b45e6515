// expect: HOOK_HEAP_LIMIT|HOOK_CPU_LIMIT
// Copies a structure again and again until there is no room.
function f() {
  let all = [1];
  for (;;) all = structuredClone([all, all, { all: structuredClone(all) }]);
}
