// expect: ok
// Delays and ids that are no numbers.
async function f() {
  const bad = [NaN, -Infinity, {}, null, undefined, '5', -1e99, { valueOf() { return 1 } }, []];
  for (const id of bad) { clearTimeout(id); clearInterval(id); }
  await Promise.all(bad.map((delay) => new Promise((done) => setTimeout(done, delay))));
}
