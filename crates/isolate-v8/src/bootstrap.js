// The world that a script finds: `ctx` prototypes made of the operation table, console, host time and host randomness.
// Invariant: nothing of the host is reachable from here but the functions given, and those know only the running call.
// Runs once, while the startup snapshot is made; it must not read the time or a random number then.
(function (methods, spaces, host, parts) {
  'use strict';
  const { create, defineProperty, freeze, getOwnPropertyDescriptor, getOwnPropertyDescriptors, getPrototypeOf, setPrototypeOf } = Object;
  const { apply, construct, ownKeys } = Reflect;
  const { stringify } = JSON;
  const hidden = (target, name, value) =>
    defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });

  // -- ctx ---------------------------------------------------------------------------------------------------------------------
  const protos = spaces.map(({ make }) => {
    const proto = make.prototype;
    // A script must not be able to make such an object itself.
    delete proto.constructor;
    return proto;
  });
  const listed = (first, rest) => {
    const all = [first];
    for (let i = 0; i < rest.length; i++) defineProperty(all, i + 1, { value: rest[i], writable: true, configurable: true, enumerable: true });
    return all;
  };
  // Below `*` stands any name: what the script writes there is the operation's first argument.
  const named = (getter, members) => {
    const get = (_, given, object) => {
      if (typeof given !== 'string') return undefined;
      const receiver = apply(getter, object, []);
      const view = {};
      for (let i = 0; i < members.length; i++) {
        const { sync, later, property } = members[i], { name } = sync;
        const now = { [name](...args) { return apply(sync, receiver, listed(given, args)); } }[name];
        defineProperty(view, name, property ? { __proto__: null, configurable: true, get: now } : { __proto__: null, configurable: true, value: now });
        if (later) hidden(view, later.name, { [later.name](...args) { return apply(later, receiver, listed(given, args)); } }[later.name]);
      }
      return view;
    };
    return new Proxy({ __proto__: null }, { __proto__: null, get });
  };
  const members = spaces.map(() => []);
  // Operations behind globals, not on `ctx`.
  const behind = { __proto__: null };
  for (const method of methods) {
    const { space, sync, later } = method;
    if (sync.name[0] === '$') {
      behind[sync.name] = later || sync;
      continue;
    }
    if (spaces[space].name === '*') {
      members[space].push(method);
      continue;
    }
    hidden(protos[space], sync.name, sync);
    if (later) hidden(protos[space], later.name, later);
  }
  for (let i = 1; i < spaces.length; i++) {
    const { parent, name, getter } = spaces[i];
    if (name === '*') setPrototypeOf(protos[parent], named(getter, members[i]));
    else defineProperty(protos[parent], name, { get: getter, configurable: true, enumerable: false });
  }
  for (const name of ['Release', '__release']) if (!(name in protos[0])) hidden(protos[0], name, host.Release);
  if (Symbol.dispose) hidden(protos[0], Symbol.dispose, host.Release);
  const constructors = spaces.map(({ make }) => make);

  // For a call that lacks some groups: the object loses their names.
  const without = (object, names) => {
    const proto = getPrototypeOf(object), own = getOwnPropertyDescriptors(proto);
    for (let i = 0; i < names.length; i++) delete own[names[i]];
    setPrototypeOf(object, create(getPrototypeOf(proto), own));
  };

  // A stopped script is unwound by entering a function: V8 notices the stop there.
  const nudge = () => { for (let i = 0; i < 100; i++) { host; } };

  // -- console -----------------------------------------------------------------------------------------------------------------
  const show = (value) => {
    if (typeof value === 'string') return value;
    try {
      if (value instanceof Error) return String(value.stack || value);
      if (typeof value === 'object' && value !== null) {
        const text = stringify(value);
        if (text !== undefined) return text;
      }
      return String(value);
    } catch {
      return '[not printable]';
    }
  };
  const line = (values) => {
    let text = '';
    for (let i = 0; i < values.length; i++) text += (i ? ' ' : '') + show(values[i]);
    return text;
  };
  const levels = { log: 'log', info: 'info', warn: 'warn', error: 'error', debug: 'debug', trace: 'debug', dir: 'log', table: 'log', group: 'log' };
  const console = {};
  for (const name of Object.keys(levels)) {
    const level = levels[name];
    const method = { [name](...values) { host.console(level, line(values)); } };
    hidden(console, name, method[name]);
  }
  hidden(console, 'assert', { assert(ok, ...values) { if (!ok) host.console('error', 'Assertion failed: ' + line(values)); } }.assert);
  for (const name of ['groupEnd', 'time', 'timeEnd', 'timeLog', 'count', 'clear']) hidden(console, name, { [name]() {} }[name]);
  hidden(globalThis, 'console', console);

  // -- time and randomness -----------------------------------------------------------------------------------------------------
  const RealDate = Date;
  const now = () => host.now();
  const HostDate = function Date(...args) {
    if (new.target === undefined) return new RealDate(now()).toString();
    return construct(RealDate, args.length === 0 ? [now()] : args, new.target);
  };
  defineProperty(HostDate, 'length', { value: 7, configurable: true });
  defineProperty(HostDate, 'prototype', { value: RealDate.prototype, writable: false });
  hidden(RealDate.prototype, 'constructor', HostDate);
  hidden(HostDate, 'now', { now() { return now(); } }.now);
  hidden(HostDate, 'parse', RealDate.parse);
  hidden(HostDate, 'UTC', RealDate.UTC);
  hidden(globalThis, 'Date', HostDate);
  hidden(Math, 'random', { random() { return host.random(); } }.random);
  if (typeof Intl === 'object') {
    const proto = Intl.DateTimeFormat.prototype;
    const format = getOwnPropertyDescriptor(proto, 'format').get;
    defineProperty(proto, 'format', {
      configurable: true,
      get() {
        const bound = apply(format, this, []);
        return (date) => bound(date === undefined ? now() : date);
      },
    });
    const parts = proto.formatToParts;
    hidden(proto, 'formatToParts', { formatToParts(date) { return apply(parts, this, [date === undefined ? now() : date]); } }.formatToParts);
  }

  // -- the web's globals -------------------------------------------------------------------------------------------------------
  // Each is an accessor until it is first asked for: its code is compiled then, and costs nothing before.
  let isFrozen = false;
  const made = { __proto__: null };
  const use = (part) => {
    if (made[part] === undefined) {
      made[part] = host.part(part)(web);
      if (isFrozen) freezeAll([made[part]]);
    }
    return made[part];
  };
  const web = {
    __proto__: null, use, made: (part) => made[part], cancel: host.cancel, turn: host.turn,
    ask: (op, ...values) => apply(behind[op], undefined, values), start: (op, ...values) => apply(behind[op], undefined, values),
  };
  for (const [part, names] of parts) {
    for (const name of names) {
      defineProperty(globalThis, name, {
        __proto__: null, configurable: true, enumerable: false,
        get() {
          const value = use(part)[name];
          if (!isFrozen) hidden(globalThis, name, value);
          return value;
        },
        set(value) { hidden(globalThis, name, value); },
      });
    }
  }

  // -- frozen contexts ---------------------------------------------------------------------------------------------------------
  // Everything that calls share and could leave something in is frozen: what can be reached from the global object, and what only
  // syntax reaches. Own copies of inherited properties can still be assigned below the prototypes that programs extend by hand.
  const syntaxOnly = () => [
    function* () {}, async () => {}, async function* () {}, (function* () {})(), (async function* () {})(),
    [][Symbol.iterator](), ''[Symbol.iterator](), 'x'.matchAll(/x/g), new Map().keys(), new Set().keys(), Uint8Array,
    ...(typeof Iterator === 'function' ? [[].values().map((x) => x), Iterator.from({ next() {} })] : []),
    ...(typeof Intl === 'object' && Intl.Segmenter ? [new Intl.Segmenter().segment('x'), new Intl.Segmenter().segment('x')[Symbol.iterator]()] : []),
  ];
  const letAssign = (proto) => {
    for (const key of ownKeys(proto)) {
      const { value, writable, configurable, enumerable } = getOwnPropertyDescriptor(proto, key);
      if (!writable || !configurable || key === 'name' && proto === Function.prototype || key === 'length') continue;
      defineProperty(proto, key, {
        configurable, enumerable,
        get() { return value; },
        set(next) {
          if (this === proto || this === null || typeof this !== 'object' && typeof this !== 'function')
            throw new TypeError(`Cannot assign to read only property '${String(key)}'`);
          defineProperty(this, key, { value: next, writable: true, configurable: true, enumerable: true });
        },
      });
    }
  };
  const freezeAll = (roots) => {
    const seen = new Set(), rest = roots;
    while (rest.length > 0) {
      const object = rest.pop();
      if (object === null || typeof object !== 'object' && typeof object !== 'function' || seen.has(object)) continue;
      seen.add(object);
      rest.push(getPrototypeOf(object));
      for (const key of ownKeys(object)) {
        const { value, get, set } = getOwnPropertyDescriptor(object, key);
        rest.push(value, get, set);
      }
    }
    for (const object of seen) freeze(object);
  };
  const freezeWorld = () => {
    isFrozen = true;
    // What the last match was would be left for the next call.
    for (const key of ownKeys(RegExp)) if (typeof key === 'string' && /^(\$|input|last|left|right)/.test(key)) delete RegExp[key];
    for (const parent of [Object, Function, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError])
      letAssign(parent.prototype);
    freezeAll([globalThis, ...protos, ...syntaxOnly()]);
  };

  // Not while the snapshot is made: when V8 wakes a context from it, it extends some of these objects and puts others back.
  const unwanted = ['Temporal', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'WeakRef'];

  return () => {
    for (let i = 0; i < unwanted.length; i++) delete globalThis[unwanted[i]];
    return [nudge, freezeWorld, constructors, without];
  };
})
