// crypto.randomUUID and crypto.getRandomValues, from the host's entropy.
// Invariant: every random bit comes from the host, so that it follows from the seed in a simulation. Deliberately no `subtle`.
(function (web) {
  'use strict';
  const { defineProperty } = Object;
  const MOST = 65536;
  const integers = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array];
  const crypto = {};
  const method = (name, value) => defineProperty(crypto, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
  method('getRandomValues', function getRandomValues(array) {
    if (!integers.some((Kind) => array instanceof Kind))
      throw new (web.use('events').DOMException)('crypto.getRandomValues: it must be an array of integers', 'TypeMismatchError');
    if (array.byteLength > MOST)
      throw new (web.use('events').DOMException)(`crypto.getRandomValues: at most ${MOST} bytes at once`, 'QuotaExceededError');
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    if (bytes.length === 0) return array;
    const hex = web.ask('$entropy', bytes.length);
    for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(hex.slice(at * 2, at * 2 + 2), 16);
    return array;
  });
  method('randomUUID', function randomUUID() {
    const hex = web.ask('$entropy', 16);
    const variant = (parseInt(hex[16], 16) & 3 | 8).toString(16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  });
  defineProperty(crypto, Symbol.toStringTag, { __proto__: null, value: 'Crypto', configurable: true });
  return { crypto };
})
