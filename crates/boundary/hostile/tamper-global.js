// expect: ok
// Deletes every global.
function f(ctx) {
  for (const name of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[name] } catch {}
  return ctx.Send('x').id === 1
}
