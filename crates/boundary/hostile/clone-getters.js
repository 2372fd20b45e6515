// expect: ok
// Getters, proxies and classes that run while they are copied.
function f() {
  let n = 0;
  const value = { get a() { n++; return structuredClone({ b: 1 }) }, p: new Proxy([1, 2], {}), m: new (class extends Map {})([[1, 2]]) };
  const copy = structuredClone(value);
  return n === 1 && copy.a.b === 1 && copy.m.get(1) === 2;
}
