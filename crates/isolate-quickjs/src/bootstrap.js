// Runs before a script in every context and is given the host's functions. It keeps the intrinsics it needs, so that
// what a script does to them stays within that script. It returns the functions that the host calls.
(function bootstrap(native, table, dataText, absent) {
  "use strict";
  // Without groups that this call lacks, and operations behind globals.
  const ops = table.ops.filter((op) => op.path[0] !== "$" && !absent.some((path) => op.path.startsWith(`${path}.`)));
  const { stringify, parse } = JSON;
  const { apply, construct } = Reflect;
  const { create, defineProperty, getPrototypeOf, keys } = Object, ObjectPrototype = Object.prototype;
  const { isArray } = Array;
  const PromiseIntrinsic = Promise, ProxyIntrinsic = Proxy;
  const promiseThen = Promise.prototype.then;
  const ErrorIntrinsic = Error;
  const StringIntrinsic = String;
  const classes = { __proto__: null, Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };
  const internalError = globalThis.InternalError ? InternalError.prototype : null;
  const { get: weakGet, set: weakSet } = WeakMap.prototype;
  const { get: mapGet, set: mapSet, delete: mapDelete, values: mapValues } = Map.prototype;
  const mapSize = Object.getOwnPropertyDescriptor(Map.prototype, "size").get;
  const captureStackTrace = Error.captureStackTrace;

  // Frames as the engine has them; the text of `stack` is for the script alone.
  const framesOf = new WeakMap();
  Error.prepareStackTrace = (error, sites) => {
    // The engine's own error: memory is exhausted. Saying so here makes it a limit, whoever catches it.
    if (getPrototypeOf(error) === internalError) native.exhausted();
    let frames = "", text = "";
    for (let i = 0; i < sites.length; i++) {
      const site = sites[i], file = site.getFileName();
      if (typeof file !== "string" || file === "greenroom:bootstrap" || site.isNative()) continue;
      const name = site.getFunctionName(), line = site.getLineNumber(), column = site.getColumnNumber();
      const shown = typeof name === "string" && name !== "<eval>" && name !== "<anonymous>" ? name : "";
      frames += (frames && ",") + stringify({ __proto__: null, function: shown, file, line, column });
      text += `    at ${shown || "<anonymous>"} (${file}:${line}:${column})\n`;
    }
    apply(weakSet, framesOf, [error, frames]);
    return text;
  };
  delete Error.prepareStackTrace;

  // Time and chance come from the host; code does not come from text.
  Math.random = () => native.random();
  const DateIntrinsic = Date;
  DateIntrinsic.now = () => native.now();
  // Local time is UTC, whatever the machine's zone is.
  const dates = Date.prototype, { UTC, parse: parseDate } = Date;
  const { getTime, toUTCString, getUTCFullYear: fullYear, getUTCMonth: month, getUTCDate: day, getUTCHours: hours } = dates;
  const { getUTCMinutes: minutes, getUTCSeconds: seconds } = dates;
  const local = (name, method) => defineProperty(dates, name, { __proto__: null, value: method, writable: true, configurable: true });
  const own = { getFullYear: dates.getFullYear, getMonth: dates.getMonth, getDate: dates.getDate, getHours: dates.getHours,
    getMinutes: dates.getMinutes, getSeconds: dates.getSeconds, getMilliseconds: dates.getMilliseconds };
  for (const part of ["FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
    local(`get${part}`, dates[`getUTC${part}`]);
    local(`set${part}`, dates[`setUTC${part}`]);
  }
  local("getDay", dates.getUTCDay);
  local("getTimezoneOffset", { getTimezoneOffset() { return apply(getTime, this, []) * 0; } }.getTimezoneOffset);
  // `Wed, 01 Jul 2026 12:30:00 GMT` in other orders.
  const words = /^(\w+), (\d+) (\w+) (-?\d+) (.*) GMT$/, ordered = (pattern) => function () {
    return apply(getTime, this, []) === apply(getTime, this, []) ? apply(replace, apply(toUTCString, this, []), [words, pattern]) : "Invalid Date";
  };
  const { replace } = String.prototype, { test } = RegExp.prototype;
  local("toString", ordered("$1 $3 $2 $4 $5 GMT+0000 (Coordinated Universal Time)"));
  local("toDateString", ordered("$1 $3 $2 $4"));
  local("toTimeString", ordered("$5 GMT+0000 (Coordinated Universal Time)"));
  const two = (number) => (number < 10 ? `0${number}` : `${number}`);
  const shownDate = (date) => `${two(apply(month, date, []) + 1)}/${two(apply(day, date, []))}/${apply(fullYear, date, [])}`;
  const shownTime = (date) => {
    const hour = apply(hours, date, []);
    return `${two(hour % 12 || 12)}:${two(apply(minutes, date, []))}:${two(apply(seconds, date, []))} ${hour < 12 ? "AM" : "PM"}`;
  };
  const shown = (write) => function () { return apply(getTime, this, []) * 0 === 0 ? write(this) : "Invalid Date"; };
  local("toLocaleDateString", shown(shownDate));
  local("toLocaleTimeString", shown(shownTime));
  local("toLocaleString", shown((date) => `${shownDate(date)}, ${shownTime(date)}`));
  const dateText = dates.toString;
  /** Text without a zone means local time, but for a date alone in ISO form. */
  const hasZone = /(?:Z|UTC?|GMT|[+-]\d\d:?\d\d)(?:\s*\(.*\))?\s*$/i, isDay = /^[+-]?\d{4,6}(?:-\d\d){0,2}$/;
  const fromText = (text) => {
    const time = parseDate(text);
    if (apply(test, isDay, [text]) || apply(test, hasZone, [text])) return time;
    const date = new DateIntrinsic(time), part = (name) => apply(own[name], date, []);
    return UTC(part("getFullYear"), part("getMonth"), part("getDate"), part("getHours"), part("getMinutes"), part("getSeconds"), part("getMilliseconds"));
  };
  DateIntrinsic.parse = (text) => fromText(`${text}`);
  const dateArguments = (args) => {
    if (args.length === 0) return [native.now()];
    if (args.length > 1) return [apply(UTC, DateIntrinsic, args)];
    return typeof args[0] === "string" ? [fromText(args[0])] : args;
  };
  globalThis.Date = new Proxy(DateIntrinsic, {
    __proto__: null,
    construct: (target, args, newTarget) => construct(target, dateArguments(args), newTarget),
    apply: () => apply(dateText, construct(DateIntrinsic, [native.now()]), []),
  });
  DateIntrinsic.prototype.constructor = globalThis.Date;
  const codeFromText = function Function() { throw new EvalError("code from text is switched off"); };
  for (const kind of [function () {}, async function () {}, function* () {}, async function* () {}]) {
    const prototype = getPrototypeOf(kind);
    defineProperty(prototype, "constructor", { __proto__: null, value: codeFromText, writable: true, configurable: true });
  }
  codeFromText.prototype = Function.prototype;
  globalThis.Function = codeFromText;
  for (const name of ["eval", "performance", "InternalError", "gc", "navigator"]) delete globalThis[name];

  const consoleText = (value) => {
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null || native.isError(value)) return StringIntrinsic(value);
    try { return stringify(value) ?? StringIntrinsic(value); } catch { return StringIntrinsic(value); }
  };
  globalThis.console = {};
  const consoleLine = (values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i ? " " : "") + consoleText(values[i]);
    return line;
  };
  const levels = { log: "log", info: "info", warn: "warn", error: "error", debug: "debug", trace: "debug", dir: "log", table: "log", group: "log" };
  for (const name in levels) globalThis.console[name] = (...values) => native.console(levels[name], consoleLine(values));
  globalThis.console.assert = (ok, ...values) => { if (!ok) native.console("error", `Assertion failed: ${consoleLine(values)}`); };
  for (const name of ["groupEnd", "time", "timeEnd", "timeLog", "count", "clear"]) globalThis.console[name] = () => {};

  // Errors of the host, thrown into the script.
  const hostError = (below, code, message, name, cause) => {
    const Class = classes[name] ?? ErrorIntrinsic;
    const error = new Class(message);
    defineProperty(error, "code", { __proto__: null, value: code, writable: true, configurable: true, enumerable: true });
    if (cause) defineProperty(error, "cause", { __proto__: null, value: cause.value, writable: true, configurable: true });
    captureStackTrace(error, below);
    return error;
  };

  // Operations under way: their callbacks, what those threw, and the promises of twins.
  const running = new Map();
  const answer = (below, reply, cause) => {
    if (isArray(reply)) throw hostError(below, reply[0], reply[1], reply[2], cause);
    return reply === undefined ? undefined : parse(reply);
  };
  const prepare = (below, op, values) => {
    if (values.length < op.min) {
      throw hostError(below, "ERR_ARGUMENT", `ctx.${op.path} needs ${op.min} arguments, ${values.length} given`, "TypeError");
    }
    let callback;
    const texts = [];
    for (let i = 0; i < values.length; i++) {
      let value = values[i];
      if (op.callback && i === op.callback.argument && typeof value === "object" && value !== null) {
        const { [op.callback.property]: found, ...rest } = value;
        if (found !== undefined && found !== null) {
          if (typeof found !== "function") {
            throw hostError(below, "ERR_ARGUMENT", `ctx.${op.path}: ${op.callback.property} must be a function`, "TypeError");
          }
          callback = found;
        }
        value = rest;
      }
      defineProperty(texts, i, { __proto__: null, value: stringify(value) ?? "null", enumerable: true });
    }
    return { texts, callback };
  };
  const start = (below, op, values) => {
    const { texts, callback } = prepare(below, op, values);
    const id = native.start(op.index, texts, callback !== undefined);
    const entry = { callback, thrown: null, resolve: null, reject: null, below };
    apply(mapSet, running, [id, entry]);
    return { id, entry };
  };
  const call = {
    inline: (below, op, values) => answer(below, native.inline(op.index, prepare(below, op, values).texts)),
    sync: (below, op, values) => {
      const { id, entry } = start(below, op, values);
      const reply = native.wait(id, dispatch);
      apply(mapDelete, running, [id]);
      return answer(below, reply, entry.thrown);
    },
    twin: (below, op, values) => new PromiseIntrinsic((resolve, reject) => {
      const { id, entry } = start(below, op, values);
      entry.resolve = resolve;
      entry.reject = reject;
      native.twin(id);
    }),
  };
  /** Runs a callback: 0 goes on, 1 stops, text is the exception. */
  function dispatch(id, texts) {
    const entry = apply(mapGet, running, [id]);
    if (!entry || !entry.callback) return 1;
    const values = [];
    for (let i = 0; i < texts.length; i++) defineProperty(values, i, { __proto__: null, value: parse(texts[i]), enumerable: true, writable: true, configurable: true });
    try {
      const verdict = apply(entry.callback, undefined, values);
      return verdict === false || typeof verdict === "number" && verdict !== 0 ? 1 : 0;
    } catch (error) {
      entry.thrown = { value: error };
      return describe(error);
    }
  }
  /** Settles the promise of a twin. */
  function deliver(id, reply) {
    const entry = apply(mapGet, running, [id]);
    if (!entry) return;
    apply(mapDelete, running, [id]);
    try {
      entry.resolve(answer(deliver, reply, entry.thrown));
    } catch (error) {
      entry.reject(error);
    }
  }

  // The web's globals: each is an accessor until it is first asked for, and its code is compiled then.
  const behind = { __proto__: null }, made = { __proto__: null }, idOf = new WeakMap();
  for (const op of table.ops) if (op.path[0] === "$") behind[op.path] = op;
  const web = {
    __proto__: null,
    use: (part) => made[part] ??= native.part(part)(web),
    made: (part) => made[part],
    turn: () => 0,
    ask: (path, ...values) => call.inline(web.ask, behind[path], values),
    start: (path, ...values) => {
      let id;
      const promise = new PromiseIntrinsic((resolve, reject) => {
        const started = start(web.start, behind[path], values);
        id = started.id;
        started.entry.resolve = resolve;
        started.entry.reject = reject;
        native.twin(id);
      });
      apply(weakSet, idOf, [promise, id]);
      return promise;
    },
    cancel: (promise) => {
      const id = apply(weakGet, idOf, [promise]);
      if (!apply(mapGet, running, [id])) return;
      apply(mapDelete, running, [id]);
      native.cancel(id);
    },
  };
  for (const [part, names] of table.parts) {
    for (const name of names) {
      const keep = (value) => defineProperty(globalThis, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
      defineProperty(globalThis, name, {
        __proto__: null, configurable: true, enumerable: false,
        get() {
          const value = web.use(part)[name];
          keep(value);
          return value;
        },
        set: keep,
      });
    }
  }

  /** Below `*` stands any name: what the script writes there is the operation's first argument. */
  function named(at, op, space, name, views, live) {
    if (!views[space]) {
      const entries = views[space] = [];
      const get = (_, given) => {
        if (typeof given !== "string") return undefined;
        const view = create(ObjectPrototype);
        for (let i = 0; i < entries.length; i++) entries[i](view, given);
        return view;
      };
      const object = new ProxyIntrinsic(create(null), { __proto__: null, get });
      defineProperty(at.methods, space, { __proto__: null, value: object });
    }
    const bind = (key, run) => {
      const bound = live(run, op);
      return (given) => ({ [key](...values) { return bound(bind, listed(given, values)); } }[key]);
    };
    const now = bind(name, op.isInline ? call.inline : call.sync), twin = bind(`${name}Async`, call.twin);
    defineProperty(views[space], views[space].length, { __proto__: null, value: (view, given) => {
      if (op.min === 1) defineProperty(view, name, { __proto__: null, get: now(given) });
      else defineProperty(view, name, { __proto__: null, value: now(given) });
      if (!op.isInline) defineProperty(view, `${name}Async`, { __proto__: null, value: twin(given) });
    } });
  }
  const listed = (first, rest) => {
    const all = [first];
    for (let i = 0; i < rest.length; i++) defineProperty(all, i + 1, { __proto__: null, value: rest[i], enumerable: true, writable: true, configurable: true });
    return all;
  };

  /** The script's `ctx`. Its methods know their one receiver, so no other object can stand in for it. */
  function makeContext() {
    let isLive = true;
    const methods = create(ObjectPrototype), context = create(methods);
    const groups = { __proto__: null };
    // The object at a path and the object that holds its methods.
    const group = (parts, depth) => {
      let at = { object: context, methods }, path = "";
      for (let i = 0; i < depth; i++) {
        path += `${path && "."}${parts[i]}`;
        if (!groups[path]) {
          const inner = create(ObjectPrototype);
          groups[path] = { object: create(inner), methods: inner };
          defineProperty(at.methods, parts[i], { __proto__: null, value: groups[path].object });
        }
        at = groups[path];
      }
      return at;
    };
    const method = (at, name, path, run) => {
      const bridged = { [name](...values) {
        if (this !== at.object) throw hostError(bridged, "ERR_RECEIVER", `ctx.${path} was called on another object`, "TypeError");
        return run(bridged, values);
      } }[name];
      defineProperty(at.methods, name, { __proto__: null, value: bridged, writable: true, configurable: true });
    };
    const live = (run, op) => (below, values) => {
      if (!isLive) throw hostError(below, "ERR_RELEASED", `ctx.${op.path} was called after the context was released`, "Error");
      return run(below, op, values);
    };
    const views = { __proto__: null };
    for (let i = 0; i < ops.length; i++) {
      const op = ops[i], last = op.parts.length - 1, name = op.parts[last];
      if (op.parts[last - 1] === "*") {
        named(group(op.parts, last - 2), op, op.parts[last - 2], name, views, live);
        continue;
      }
      const at = group(op.parts, last);
      method(at, name, op.path, live(op.isInline ? call.inline : call.sync, op));
      if (!op.isInline) method(at, `${name}Async`, `${op.path}Async`, live(call.twin, op));
    }
    method(group([], 0), "Release", "Release", () => {
      if (isLive) native.release();
      isLive = false;
    });
    const data = parse(dataText);
    for (const key of keys(data)) {
      defineProperty(context, key, { __proto__: null, value: data[key], enumerable: true, writable: true, configurable: true });
    }
    return context;
  }

  const attempt = (read) => { try { return read(); } catch { return undefined; } };
  const reported = (value, depth) => {
    if (!native.isError(value)) {
      const text = attempt(() => StringIntrinsic(value));
      return { __proto__: null, class: "Error", message: typeof text === "string" ? text : "a value without text", frames: "",
        // With no memory left for an error the engine throws null.
        isInternal: value === null && depth === 0 };
    }
    const name = attempt(() => value.name), message = attempt(() => value.message), code = attempt(() => value.code);
    const out = {
      __proto__: null,
      class: typeof name === "string" ? name : "Error",
      message: typeof message === "string" ? message : "",
      frames: attempt(() => apply(weakGet, framesOf, [value])) ?? "",
      isInternal: attempt(() => getPrototypeOf(value) === internalError) === true,
    };
    if (typeof code === "string" || typeof code === "number") out.code = `${code}`;
    const cause = depth < 8 ? attempt(() => value.cause) : undefined;
    if (cause !== undefined) out.cause = reported(cause, depth + 1);
    return out;
  };
  /** An exception as JSON text. */
  function describe(value) { return stringify(reported(value, 0)); }

  /** Whether a value cannot be JSON, and why; asked only once turning it into JSON failed. */
  const notJson = (value) => {
    let why;
    const holders = [];
    let count = 0;
    try {
      stringify(value, function (key, inner) {
        while (count > 0 && holders[count - 1] !== this) count--;
        if (typeof inner === "bigint") why ??= "it holds a BigInt";
        if (typeof inner === "object" && inner !== null) {
          for (let i = 0; i < count; i++) if (holders[i] === inner) why ??= "it holds itself";
          defineProperty(holders, count++, { __proto__: null, value: inner, writable: true, configurable: true });
        }
        return why ? undefined : inner;
      });
    } catch { /* The first failure is the one to report. */ }
    return why;
  };

  let settled;
  /** Calls a function of the script. A promise it returns settles later. */
  function enter(run, contextAt, texts) {
    const values = [];
    const add = (value) => defineProperty(values, values.length, { __proto__: null, value, enumerable: true, writable: true, configurable: true });
    if (contextAt === "first") add(makeContext());
    for (let i = 0; i < texts.length; i++) add(parse(texts[i]));
    if (contextAt === "last") add(makeContext());
    const value = apply(run, undefined, values);
    if (typeof value !== "object" && typeof value !== "function" || value === null) {
      settled = { value };
      return;
    }
    const promise = new PromiseIntrinsic((resolve) => resolve(value));
    apply(promiseThen, promise, [(value) => { settled = { value }; }, (error) => { settled = { error }; }]);
  }
  /** The outcome so far: nothing, or a result as text, or why it is no JSON. Throws what the function threw. */
  function outcome() {
    if (!settled) return undefined;
    if ("error" in settled) throw settled.error;
    try {
      return { __proto__: null, text: stringify(settled.value) };
    } catch (error) {
      const why = notJson(settled.value);
      if (why) return { __proto__: null, why };
      throw error;
    }
  }

  const rejections = new Map();
  /** Keeps rejected promises until someone handles them. */
  function track(promise, reason, isHandled) {
    if (isHandled) apply(mapDelete, rejections, [promise]);
    else apply(mapSet, rejections, [promise, { reason }]);
  }
  const iteratorNext = getPrototypeOf(new Map().values()).next;
  /** The first rejection that nobody handled. */
  function unhandled() {
    if (apply(mapSize, rejections, []) === 0) return undefined;
    return describe(apply(iteratorNext, apply(mapValues, rejections, []), []).value.reason);
  }

  const { getOwnPropertyDescriptor } = Object;
  /** Whether a function is a class, which cannot be called: its `prototype` is read-only. */
  function isClass(value) {
    if (typeof value !== "function") return false;
    const prototype = getOwnPropertyDescriptor(value, "prototype");
    return prototype !== undefined && prototype.writable === false;
  }
  /** Somebody looks at this promise: no rejection of it is unhandled. */
  function handled(promise) { apply(promiseThen, promise, [undefined, () => {}]); }

  return { __proto__: null, enter, outcome, dispatch, deliver, describe, track, unhandled, isClass, handled };
})
