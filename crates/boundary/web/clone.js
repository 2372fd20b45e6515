// structuredClone: plain data, Map, Set, Date, RegExp, errors, buffers and their views; cycles keep their shape.
// Invariant: the copy shares nothing with the original. What it cannot copy is a DataCloneError. Deliberately no `transfer`.
(function (web) {
  'use strict';
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const { defineProperty, getPrototypeOf } = Object, { isPrototypeOf } = Object.prototype;
  const { isView } = ArrayBuffer;
  const refuse = (what) => {
    throw new (web.use('events').DOMException)(`structuredClone: ${what} cannot be copied`, 'DataCloneError');
  };
  const getter = (proto, name) => getOwnPropertyDescriptor(proto, name).get;
  const brands = {
    __proto__: null,
    map: getter(Map.prototype, 'size'), set: getter(Set.prototype, 'size'), date: Date.prototype.getTime,
    buffer: getter(ArrayBuffer.prototype, 'byteLength'), number: Number.prototype.valueOf, text: String.prototype.valueOf,
    boolean: Boolean.prototype.valueOf, bigint: BigInt.prototype.valueOf, symbol: Symbol.prototype.valueOf,
  };
  const is = (brand, value) => {
    try {
      apply(brands[brand], value, []);
      return true;
    } catch {
      return false;
    }
  };
  const generator = getPrototypeOf(function* () {}).prototype;
  const views = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array,
    BigInt64Array, BigUint64Array, DataView];
  /** Objects that hold more than their properties. */
  const uncopied = (value) => {
    if ([Promise, WeakMap, WeakSet].some((Kind) => value instanceof Kind) || apply(isPrototypeOf, generator, [value])) return true;
    const kinds = ['events', 'text', 'url', 'fetch'].flatMap((part) => Object.values(web.made(part) ?? {}));
    return kinds.some((Kind) => typeof Kind === 'function' && Kind.prototype !== undefined && value instanceof Kind);
  };
  const errors = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const define = (object, key, value) => defineProperty(object, key, { __proto__: null, value, writable: true, configurable: true, enumerable: true });

  const copyError = (value, seen) => {
    const { DOMException } = web.made('events') ?? {};
    if (DOMException !== undefined && value instanceof DOMException) return keep(value, new DOMException(value.message, value.name), seen);
    const name = `${value.name}`, Kind = errors[name] ?? Error;
    const own = getOwnPropertyDescriptor(value, 'message');
    const copy = own === undefined ? new Kind() : new Kind(`${own.value}`);
    seen.set(value, copy);
    const hidden = (key, given) => defineProperty(copy, key, { __proto__: null, value: given, writable: true, configurable: true });
    const { stack } = value;
    if (typeof stack === 'string') hidden('stack', stack);
    const cause = getOwnPropertyDescriptor(value, 'cause');
    if (cause !== undefined && 'value' in cause) hidden('cause', copied(cause.value, seen));
    return copy;
  };
  const copyView = (value, seen) => {
    const Kind = views.find((each) => value instanceof each);
    if (Kind === undefined) refuse('this view of a buffer');
    return new Kind(copied(value.buffer, seen), value.byteOffset, Kind === DataView ? value.byteLength : value.length);
  };
  const keep = (value, copy, seen) => {
    seen.set(value, copy);
    return copy;
  };
  function copied(value, seen) {
    if (typeof value === 'symbol') refuse('a symbol');
    if (typeof value === 'function') refuse(`the function ${value.name || '(anonymous)'}`);
    if (typeof value !== 'object' || value === null) return value;
    const known = seen.get(value);
    if (known !== undefined) return known;
    if (Array.isArray(value)) {
      const copy = keep(value, new Array(value.length), seen);
      for (const key of Object.keys(value)) define(copy, key, copied(value[key], seen));
      return copy;
    }
    if (isView(value)) return keep(value, copyView(value, seen), seen);
    if (value instanceof Error) return copyError(value, seen);
    if (is('map', value)) {
      const copy = keep(value, new Map(), seen);
      for (const [key, inner] of [...apply(Map.prototype.entries, value, [])]) copy.set(copied(key, seen), copied(inner, seen));
      return copy;
    }
    if (is('set', value)) {
      const copy = keep(value, new Set(), seen);
      for (const inner of [...apply(Set.prototype.values, value, [])]) copy.add(copied(inner, seen));
      return copy;
    }
    if (is('date', value)) return keep(value, new Date(apply(brands.date, value, [])), seen);
    if (is('buffer', value)) return keep(value, apply(ArrayBuffer.prototype.slice, value, [0]), seen);
    if (value instanceof RegExp) return keep(value, new RegExp(value.source, value.flags), seen);
    for (const kind of ['number', 'text', 'boolean', 'bigint']) if (is(kind, value)) return keep(value, Object(apply(brands[kind], value, [])), seen);
    if (is('symbol', value)) refuse('a symbol');
    if (uncopied(value)) refuse(`a ${value.constructor?.name}`);
    const copy = keep(value, {}, seen);
    for (const key of Object.keys(value)) define(copy, key, copied(value[key], seen));
    return copy;
  }

  return {
    structuredClone: function structuredClone(value, options) {
      if (arguments.length === 0) throw new TypeError('structuredClone: a value is needed');
      if (options?.transfer !== undefined && [...options.transfer].length > 0) refuse('what is to be transferred');
      return copied(value, new Map());
    },
  };
})
