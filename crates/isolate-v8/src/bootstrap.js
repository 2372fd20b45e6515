// The world that a script finds: `ctx` prototypes made of the operation table, console, host time and host randomness.
// Invariant: nothing of the host is reachable from here but the functions given to `install`, and those stay in this closure.
// Runs once, while the startup snapshot is made; it must not read the time or a random number then.
(function (table) {
  'use strict';
  const { defineProperty, getOwnPropertyDescriptor, setPrototypeOf } = Object;
  const { apply, construct } = Reflect;
  const { stringify } = JSON;
  const hidden = (target, name, value) =>
    defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
  let host = null;

  // -- ctx ---------------------------------------------------------------------------------------------------------------------
  const spaces = [{ path: '', name: '', parent: 0, proto: {} }];
  const spaceOf = (path) => {
    const known = spaces.findIndex((space) => space.path === path);
    if (known >= 0) return known;
    const dot = path.lastIndexOf('.');
    const parent = spaceOf(dot < 0 ? '' : path.slice(0, dot));
    spaces.push({ path, name: path.slice(dot + 1), parent, proto: {} });
    return spaces.length - 1;
  };
  // Below `*` stands any name: what the script writes there is the operation's first argument.
  const named = (parent, key) => {
    const members = [];
    defineProperty(spaces[parent].proto, key, {
      configurable: true,
      get() {
        const receiver = setPrototypeOf(host.make(members.space), null);
        const get = (_, name) => {
          if (typeof name !== 'string') return undefined;
          const view = {};
          for (let i = 0; i < members.length; i++) members[i](view, receiver, name);
          return view;
        };
        return new Proxy({ __proto__: null }, { __proto__: null, get });
      },
    });
    return members;
  };
  const listed = (first, rest) => {
    const all = [first];
    for (let i = 0; i < rest.length; i++) defineProperty(all, i + 1, { value: rest[i], writable: true, configurable: true, enumerable: true });
    return all;
  };
  const groups = { __proto__: null };
  const addNamed = (path, index, waits, isProperty) => {
    const parts = path.split('.');
    const name = parts.pop();
    const above = parts.slice(0, -2).join('.');
    const group = parts.join('.');
    if (!groups[group]) {
      groups[group] = named(spaceOf(above), parts[parts.length - 2]);
      spaces.push({ path: group, name: '', parent: -1, proto: null });
      groups[group].space = spaces.length - 1;
    }
    const members = groups[group], space = members.space;
    members.push((view, receiver, given) => {
      const now = { [name](...args) { return host.op(receiver, space, index, listed(given, args)); } }[name];
      defineProperty(view, name, isProperty ? { __proto__: null, configurable: true, get: now } : { __proto__: null, configurable: true, value: now });
      const twin = name + 'Async';
      const later = { [twin](...args) { return host.opAsync(receiver, space, index, listed(given, args)); } };
      if (waits) hidden(view, twin, later[twin]);
    });
  };
  table.forEach(({ path, waits, least }, index) => {
    if (path.includes('.*.')) return addNamed(path, index, waits, least === 1);
    const dot = path.lastIndexOf('.');
    const space = spaceOf(dot < 0 ? '' : path.slice(0, dot));
    const name = path.slice(dot + 1);
    const sync = { [name](...args) { return host.op(this, space, index, args); } };
    hidden(spaces[space].proto, name, sync[name]);
    if (waits) {
      const twin = name + 'Async';
      const later = { [twin](...args) { return host.opAsync(this, space, index, args); } };
      hidden(spaces[space].proto, twin, later[twin]);
    }
  });
  const release = { Release() { host.release(this); }, __release() { host.release(this); } };
  for (const name of ['Release', '__release']) {
    if (!(name in spaces[0].proto)) hidden(spaces[0].proto, name, release[name]);
  }
  if (Symbol.dispose) hidden(spaces[0].proto, Symbol.dispose, release.Release);

  const build = () => {
    const made = [];
    for (let i = 0; i < spaces.length; i++) {
      if (spaces[i].parent < 0) continue;
      const object = setPrototypeOf(host.make(i), spaces[i].proto);
      made[i] = object;
      if (i > 0) {
        defineProperty(made[spaces[i].parent], spaces[i].name, { value: object, writable: false, configurable: true, enumerable: false });
      }
    }
    return made[0];
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

  // Not while the snapshot is made: when V8 wakes a context from it, it extends some of these objects and puts others back.
  const unwanted = ['Temporal', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'WeakRef'];

  return (natives) => {
    host = natives;
    for (let i = 0; i < unwanted.length; i++) delete globalThis[unwanted[i]];
    return [build, nudge];
  };
})
