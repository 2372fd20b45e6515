// URL and URLSearchParams. The host parses and changes addresses; here they are only shown.
// Invariant: `searchParams` and `search` of one URL always agree.
(function (web) {
  'use strict';
  const { defineProperty } = Object;
  const usv = (value) => `${value}`.replace(/\p{Surrogate}/gu, '\ufffd');
  const hex = (unit) => `%${unit.charCodeAt(0).toString(16).toUpperCase()}`;
  const escape = (text) => encodeURIComponent(text).replace(/[!'()~]/g, hex).replace(/%20/g, '+');
  const unescape = (text) => {
    text = text.replace(/\+/g, ' ');
    if (!text.includes('%')) return text;
    try {
      return decodeURIComponent(text);
    } catch {
      const { encode, utf8 } = web.use('text'), bytes = encode(text), out = [];
      for (let at = 0; at < bytes.length; at++) {
        const pair = bytes[at] === 37 ? String.fromCharCode(bytes[at + 1] ?? 0, bytes[at + 2] ?? 0) : '';
        if (/^[0-9a-f]{2}$/i.test(pair)) {
          out.push(parseInt(pair, 16));
          at += 2;
        } else out.push(bytes[at]);
      }
      return utf8(new Uint8Array(out));
    }
  };
  const parse = (text) => {
    const pairs = [];
    for (const part of text.split('&')) {
      if (part === '') continue;
      const at = part.indexOf('=');
      pairs.push(at < 0 ? [unescape(part), ''] : [unescape(part.slice(0, at)), unescape(part.slice(at + 1))]);
    }
    return pairs;
  };

  let refill, owned;
  class URLSearchParams {
    #pairs = []; #tell = undefined;
    constructor(init = '') {
      if (typeof init === 'object' && init !== null || typeof init === 'function') {
        if (init[Symbol.iterator] !== undefined && init[Symbol.iterator] !== null) {
          for (const pair of init) {
            const both = [...pair];
            if (both.length !== 2) throw new TypeError('URLSearchParams: each pair must be [name, value]');
            this.#pairs.push([usv(both[0]), usv(both[1])]);
          }
        } else {
          for (const name of Object.keys(init)) this.#pairs.push([usv(name), usv(init[name])]);
        }
      } else {
        this.#pairs = parse(usv(init).replace(/^\?/, ''));
      }
    }
    #changed() { this.#tell?.(this.toString()); }
    get size() { return this.#pairs.length; }
    append(name, value) {
      this.#pairs.push([usv(name), usv(value)]);
      this.#changed();
    }
    delete(name, value) {
      name = usv(name);
      const only = value === undefined ? undefined : usv(value);
      this.#pairs = this.#pairs.filter((pair) => pair[0] !== name || only !== undefined && pair[1] !== only);
      this.#changed();
    }
    get(name) {
      name = usv(name);
      return this.#pairs.find((pair) => pair[0] === name)?.[1] ?? null;
    }
    getAll(name) {
      name = usv(name);
      return this.#pairs.filter((pair) => pair[0] === name).map((pair) => pair[1]);
    }
    has(name, value) {
      name = usv(name);
      const only = value === undefined ? undefined : usv(value);
      return this.#pairs.some((pair) => pair[0] === name && (only === undefined || pair[1] === only));
    }
    set(name, value) {
      name = usv(name);
      const first = this.#pairs.findIndex((pair) => pair[0] === name);
      if (first < 0) return this.append(name, value);
      this.#pairs[first][1] = usv(value);
      this.#pairs = this.#pairs.filter((pair, at) => at <= first || pair[0] !== name);
      this.#changed();
    }
    sort() {
      this.#pairs.sort((one, other) => (one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0));
      this.#changed();
    }
    forEach(callback, receiver) {
      for (const [name, value] of this) Reflect.apply(callback, receiver, [value, name, this]);
    }
    *entries() { for (let at = 0; at < this.#pairs.length; at++) yield [...this.#pairs[at]]; }
    *keys() { for (const [name] of this.entries()) yield name; }
    *values() { for (const [, value] of this.entries()) yield value; }
    toString() { return this.#pairs.map(([name, value]) => `${escape(name)}=${escape(value)}`).join('&'); }
    static {
      defineProperty(this.prototype, Symbol.iterator, { __proto__: null, value: this.prototype.entries, writable: true, configurable: true });
      owned = (tell) => {
        const params = new URLSearchParams();
        params.#tell = tell;
        return params;
      };
      refill = (params, text) => { params.#pairs = parse(text.replace(/^\?/, '')); };
    }
  }

  const failed = (text) => {
    const error = new TypeError(`URL: ${JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)} is no address`);
    error.code = 'ERR_INVALID_URL';
    return error;
  };
  const resolved = (address, base) => web.ask('$url', usv(address), base === undefined ? null : usv(base));

  let fill;
  class URL {
    #parts; #params;
    constructor(address, base) {
      if (arguments.length === 0) throw new TypeError('URL: an address is needed');
      const parts = resolved(address, base);
      if (parts === null) throw failed(`${address}`);
      this.#fill(parts);
    }
    #fill(parts) {
      this.#parts = parts;
      this.#params ??= owned((text) => this.#change('search', text));
      refill(this.#params, parts.search);
    }
    #change(field, value) {
      const parts = web.ask('$url', this.#parts.href, null, field, usv(value));
      // What does not fit changes nothing.
      if (parts === null) return;
      this.#parts = parts;
    }
    get href() { return this.#parts.href; }
    set href(value) {
      const parts = resolved(value);
      if (parts === null) throw failed(`${value}`);
      this.#fill(parts);
    }
    get origin() { return this.#parts.origin; }
    get searchParams() { return this.#params; }
    get search() { return this.#parts.search; }
    set search(value) {
      this.#change('search', value);
      refill(this.#params, this.#parts.search);
    }
    toString() { return this.#parts.href; }
    toJSON() { return this.#parts.href; }
    static canParse(address, base) { return resolved(address, base) !== null; }
    static parse(address, base) {
      const parts = resolved(address, base);
      return parts === null ? null : fill(new URL('a:'), parts);
    }
    static {
      for (const name of ['protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'hash']) {
        const { get, set } = { get() { return this.#parts[name]; }, set(value) { this.#change(name, value); } };
        defineProperty(this.prototype, name, { __proto__: null, get, set, enumerable: true, configurable: true });
      }
      fill = (url, parts) => {
        url.#fill(parts);
        return url;
      };
    }
  }

  return { URL, URLSearchParams };
})
