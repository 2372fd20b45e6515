// expect: ok|HOOK_NEVER_SETTLES|HOOK_THREW
// Replaces what promises and arrays are made of, then sets timers.
async function f() {
  Promise.prototype.then = () => { throw new Error('then') };
  Array.prototype.splice = () => { throw new Error('splice') };
  Array.prototype.shift = () => null;
  try { setTimeout(() => {}, 1); } catch {}
}
