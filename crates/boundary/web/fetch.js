// fetch, Headers and Response. The host asks egress, connects, follows redirects and limits the body; here are only the objects.
// Invariant: a request under way ends when its signal aborts. Deliberately no streams, no Request and no cache.
(function (web) {
  'use strict';
  const { defineProperty } = Object;
  const SECRET = {};
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

  let pairsOf;
  class Headers {
    #pairs = [];
    constructor(init = undefined) {
      if (init === undefined || init === null) return;
      if (typeof init !== 'object') throw new TypeError('Headers: an object, pairs or Headers are needed');
      const pairs = init[Symbol.iterator] ? [...init] : Object.keys(init).map((name) => [name, init[name]]);
      for (const pair of pairs) {
        if (pair.length !== 2) throw new TypeError('Headers: each pair must be [name, value]');
        this.append(pair[0], pair[1]);
      }
    }
    static #name(name) {
      name = `${name}`;
      if (!TOKEN.test(name)) throw new TypeError(`Headers: ${JSON.stringify(name)} is no name of a header`);
      return name.toLowerCase();
    }
    static #value(value) {
      value = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
      if (/[\0\n\r]|[^\0-\xff]/.test(value)) throw new TypeError('Headers: a value must be one line of Latin-1 text');
      return value;
    }
    append(name, value) { this.#pairs.push([Headers.#name(name), Headers.#value(value)]); }
    set(name, value) {
      const pair = [Headers.#name(name), Headers.#value(value)];
      this.delete(name);
      this.#pairs.push(pair);
    }
    delete(name) {
      name = Headers.#name(name);
      this.#pairs = this.#pairs.filter((pair) => pair[0] !== name);
    }
    has(name) {
      name = Headers.#name(name);
      return this.#pairs.some((pair) => pair[0] === name);
    }
    get(name) {
      name = Headers.#name(name);
      const values = this.#pairs.filter((pair) => pair[0] === name).map((pair) => pair[1]);
      return values.length > 0 ? values.join(', ') : null;
    }
    getSetCookie() { return this.#pairs.filter((pair) => pair[0] === 'set-cookie').map((pair) => pair[1]); }
    forEach(callback, receiver) {
      for (const [name, value] of this) Reflect.apply(callback, receiver, [value, name, this]);
    }
    *entries() {
      const names = [...new Set(this.#pairs.map((pair) => pair[0]))].sort();
      for (const name of names) {
        if (name === 'set-cookie') for (const value of this.getSetCookie()) yield [name, value];
        else yield [name, this.get(name)];
      }
    }
    *keys() { for (const [name] of this.entries()) yield name; }
    *values() { for (const [, value] of this.entries()) yield value; }
    static {
      defineProperty(this.prototype, Symbol.iterator, { __proto__: null, value: this.prototype.entries, writable: true, configurable: true });
      pairsOf = (headers) => headers.#pairs;
    }
  }

  class Response {
    #answer; #headers; #isUsed = false;
    constructor(secret, answer) {
      if (secret !== SECRET) throw new TypeError('Response: only fetch makes one');
      this.#answer = answer;
      this.#headers = new Headers(answer.headers);
    }
    get status() { return this.#answer.status; }
    get statusText() { return this.#answer.statusText; }
    get ok() { return this.status >= 200 && this.status <= 299; }
    get url() { return this.#answer.url; }
    get redirected() { return this.#answer.redirected; }
    get type() { return 'basic'; }
    get headers() { return this.#headers; }
    get body() { return null; }
    get bodyUsed() { return this.#isUsed; }
    #take() {
      if (this.#isUsed) throw new TypeError('Response: the body has been read');
      this.#isUsed = true;
      return this.#answer;
    }
    #bytes() {
      const { text, base64 } = this.#take(), { encode, fromBase64 } = web.use('text');
      return typeof base64 === 'string' ? fromBase64(base64) : encode(text);
    }
    async text() {
      const { text, base64 } = this.#take(), { fromBase64, utf8 } = web.use('text');
      return typeof base64 === 'string' ? utf8(fromBase64(base64)) : text;
    }
    async json() { return JSON.parse(await this.text()); }
    async bytes() { return this.#bytes(); }
    async arrayBuffer() { return this.#bytes().buffer; }
    clone() {
      if (this.#isUsed) throw new TypeError('Response: the body has been read');
      return new Response(SECRET, this.#answer);
    }
  }

  const isPlain = (value) => Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));
  /** A body as it crosses to the host, and the type that it has by itself. */
  const bodyOf = (body) => {
    if (body === undefined || body === null) return [undefined];
    if (typeof body === 'string') return [{ text: body }, 'text/plain;charset=UTF-8'];
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
      const { base64, bytesOf } = web.use('text');
      return [{ base64: base64(bytesOf(body, 'fetch: the body')) }];
    }
    const { URLSearchParams } = web.made('url') ?? {};
    if (URLSearchParams !== undefined && body instanceof URLSearchParams)
      return [{ text: `${body}` }, 'application/x-www-form-urlencoded;charset=UTF-8'];
    if (typeof body === 'object' && isPlain(body)) return [{ text: JSON.stringify(body) }, 'application/json'];
    throw new TypeError('fetch: the body must be text, bytes, URLSearchParams or plain data, which is sent as JSON');
  };
  const request = (address, init) => {
    const method = init.method === undefined ? 'GET' : `${init.method}`;
    if (!TOKEN.test(method)) throw new TypeError(`fetch: ${JSON.stringify(method)} is no method`);
    const upper = method.toUpperCase();
    const name = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'].includes(upper) ? upper : method;
    const headers = new Headers(init.headers), [body, type] = bodyOf(init.body);
    if (body !== undefined && (name === 'GET' || name === 'HEAD')) throw new TypeError(`fetch: a ${name} has no body`);
    if (type !== undefined && !headers.has('content-type')) headers.set('content-type', type);
    const redirect = init.redirect ?? 'follow';
    if (!['follow', 'error', 'manual'].includes(redirect)) throw new TypeError('fetch: redirect must be follow, error or manual');
    return { url: `${address}`, method: name, headers: pairsOf(headers), body, redirect };
  };

  return {
    Headers, Response,
    fetch: function fetch(address, init = undefined) {
      return new Promise((resolve, reject) => {
        const { onAbort, AbortSignal } = web.use('events');
        init ??= {};
        const given = request(address, init), { signal } = init;
        if (signal !== undefined && signal !== null && !(signal instanceof AbortSignal)) throw new TypeError('fetch: signal must be an AbortSignal');
        if (signal?.aborted) return reject(signal.reason);
        const exchange = web.start('$fetch', given);
        const forget = signal ? onAbort(signal, (reason) => {
          web.cancel(exchange);
          reject(reason);
        }) : () => {};
        exchange.then((answer) => {
          forget();
          resolve(new Response(SECRET, answer));
        }, (error) => {
          forget();
          reject(error);
        });
      });
    },
  };
})
