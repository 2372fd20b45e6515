// expect: ok
// Options that are getters and proxies.
async function f() {
  const init = new Proxy({}, { get(_, name) { if (name === 'method') { fetch('https://denied.example/').catch(() => {}); return 'GET'; } return undefined; } });
  return (await fetch('https://a.example/', init)).ok;
}
