// expect: ok
// Replaces the globals before and after they are made.
async function f() {
  const real = setTimeout;
  try { globalThis.URL = 1; globalThis.setTimeout = () => { throw new Error('replaced') }; delete globalThis.fetch; } catch {}
  try { Object.defineProperty(globalThis, 'crypto', { get() { throw new Error('mine') }, configurable: true }) } catch {}
  await new Promise((done) => real(done, 1));
}
