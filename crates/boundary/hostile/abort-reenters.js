// expect: ok
// A listener that aborts again, adds listeners and removes them.
function f() {
  const c = new AbortController();
  let n = 0;
  const again = () => { n++; c.abort(); c.signal.removeEventListener('abort', again); c.signal.addEventListener('abort', again); c.signal.onabort = again; };
  c.signal.addEventListener('abort', again);
  c.signal.onabort = () => c.signal.dispatchEvent(new Event('abort'));
  c.abort();
  return n < 10;
}
