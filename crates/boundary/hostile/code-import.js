// expect: HOOK_THREW
// Loads a module.
async function f() {
  return await import('node:fs');
}
