// expect: ok
// A fetch whose abort starts and aborts others.
async function f() {
  const c = new AbortController(), others = [];
  for (let i = 0; i < 10; i++) others.push(fetch('https://slow.example/', { signal: c.signal }).catch((e) => e.name));
  c.signal.onabort = () => { for (let i = 0; i < 40; i++) others.push(fetch('https://slow.example/', { signal: c.signal }).catch((e) => e.name)); };
  setTimeout(() => c.abort(), 1);
  return (await Promise.all(others)).length > 9;
}
