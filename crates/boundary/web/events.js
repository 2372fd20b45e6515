// DOMException, Event, EventTarget, AbortController and AbortSignal.
// Invariant: a signal aborts once; what waits for it runs before its listeners. What a listener throws stops no other listener: it is
// an unhandled rejection, which the hook ends with.
(function (web) {
  'use strict';
  const { apply } = Reflect;
  const { defineProperty } = Object;
  const SECRET = {};
  const CODES = {
    __proto__: null, InvalidCharacterError: 5, NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12, TypeMismatchError: 17,
    NetworkError: 19, AbortError: 20, QuotaExceededError: 22, TimeoutError: 23, DataCloneError: 25,
  };

  class DOMException extends Error {
    constructor(message = '', name = 'Error') {
      super(`${message}`);
      const own = (key, value) => defineProperty(this, key, { __proto__: null, value, writable: false, enumerable: false, configurable: true });
      own('name', `${name}`);
      own('code', CODES[`${name}`] ?? 0);
    }
  }

  let aim;
  class Event {
    #type; #cancelable; #isPrevented = false; #isStopped = false; #target = null;
    constructor(type, init = {}) {
      if (arguments.length === 0) throw new TypeError('Event: a type is needed');
      this.#type = `${type}`;
      this.#cancelable = Boolean(init?.cancelable);
    }
    get type() { return this.#type; }
    get target() { return this.#target; }
    get currentTarget() { return this.#target; }
    get cancelable() { return this.#cancelable; }
    get defaultPrevented() { return this.#isPrevented; }
    preventDefault() { if (this.#cancelable) this.#isPrevented = true; }
    stopImmediatePropagation() { this.#isStopped = true; }
    static {
      aim = (event, target) => {
        event.#target = target;
        event.#isStopped = false;
        return () => event.#isStopped;
      };
    }
  }

  const report = (error) => { Promise.reject(error); };
  class EventTarget {
    #listeners = [];
    addEventListener(type, listener, options) {
      if (listener === null || listener === undefined) return;
      if (typeof listener !== 'function' && typeof listener !== 'object') throw new TypeError('addEventListener: the listener must be a function');
      const isOnce = typeof options === 'object' && options !== null && Boolean(options.once);
      const known = this.#listeners;
      type = `${type}`;
      for (let i = 0; i < known.length; i++) if (known[i].type === type && known[i].listener === listener) return;
      known.push({ type, listener, isOnce });
      const signal = typeof options === 'object' && options !== null ? options.signal : undefined;
      if (signal !== undefined) onAbort(signal, () => this.removeEventListener(type, listener));
    }
    removeEventListener(type, listener) {
      type = `${type}`;
      this.#listeners = this.#listeners.filter((known) => known.type !== type || known.listener !== listener);
    }
    dispatchEvent(event) {
      const isStopped = aim(event, this);
      const due = this.#listeners.filter((known) => known.type === event.type);
      for (let i = 0; i < due.length && !isStopped(); i++) {
        const { listener, isOnce } = due[i];
        if (!this.#listeners.includes(due[i])) continue;
        if (isOnce) this.removeEventListener(event.type, listener);
        try {
          if (typeof listener === 'function') apply(listener, this, [event]);
          else listener.handleEvent(event);
        } catch (error) {
          report(error);
        }
      }
      return !event.defaultPrevented;
    }
  }

  let abort, onAbort;
  class AbortSignal extends EventTarget {
    #isAborted = false; #reason; #steps = []; #followers = []; #sources = []; #handler = null;
    constructor(secret) {
      if (secret !== SECRET) throw new TypeError('AbortSignal: use an AbortController, AbortSignal.timeout or AbortSignal.any');
      super();
    }
    get aborted() { return this.#isAborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#isAborted) throw this.#reason; }
    get onabort() { return this.#handler; }
    set onabort(handler) {
      if (this.#handler) this.removeEventListener('abort', this.#handler);
      this.#handler = typeof handler === 'function' ? handler : null;
      if (this.#handler) this.addEventListener('abort', this.#handler);
    }
    // Nothing of a signal crosses to the host.
    toJSON() { return undefined; }

    static abort(reason) {
      const signal = new AbortSignal(SECRET);
      abort(signal, arguments.length === 0 || reason === undefined ? undefined : { reason });
      return signal;
    }
    static timeout(delay) {
      delay = Number(delay);
      if (!(delay >= 0 && delay <= Number.MAX_SAFE_INTEGER)) throw new TypeError('AbortSignal.timeout: milliseconds must be a number from 0');
      const signal = new AbortSignal(SECRET);
      web.use('timers').after(delay, () => abort(signal, { reason: new DOMException('the time is over', 'TimeoutError') }));
      return signal;
    }
    static any(signals) {
      const all = [...signals], signal = new AbortSignal(SECRET);
      for (const source of all) if (!(#isAborted in Object(source))) throw new TypeError('AbortSignal.any: not a signal');
      const ended = all.find((source) => source.#isAborted);
      if (ended) {
        signal.#isAborted = true;
        signal.#reason = ended.#reason;
        return signal;
      }
      for (const source of all) {
        // What follows others follows their sources, so that all of them are aborted before any listener runs.
        for (const root of source.#sources.length > 0 ? source.#sources : [source]) {
          if (signal.#sources.includes(root)) continue;
          signal.#sources.push(root);
          root.#followers.push(signal);
        }
      }
      return signal;
    }
    static {
      abort = (signal, given) => {
        if (signal.#isAborted) return;
        const reason = given ? given.reason : new DOMException('the operation was aborted', 'AbortError');
        const ended = [signal];
        signal.#isAborted = true;
        signal.#reason = reason;
        for (const follower of signal.#followers) {
          if (follower.#isAborted) continue;
          follower.#isAborted = true;
          follower.#reason = reason;
          ended.push(follower);
        }
        signal.#followers = [];
        for (const each of ended) {
          const steps = each.#steps;
          each.#steps = [];
          for (const step of steps) step(reason);
          each.dispatchEvent(new Event('abort'));
        }
      };
      onAbort = (signal, step) => {
        if (typeof signal !== 'object' || signal === null || !(#isAborted in signal)) throw new TypeError('signal must be an AbortSignal');
        if (signal.#isAborted) return step(signal.#reason), () => {};
        signal.#steps.push(step);
        return () => { signal.#steps = signal.#steps.filter((known) => known !== step); };
      };
    }
  }

  class AbortController {
    #signal = new AbortSignal(SECRET);
    get signal() { return this.#signal; }
    abort(reason) { abort(this.#signal, reason === undefined ? undefined : { reason }); }
  }

  // `onAbort` runs a step with the reason when a signal aborts, or at once; gives the function that takes the step back.
  return { DOMException, Event, EventTarget, AbortController, AbortSignal, onAbort };
})
