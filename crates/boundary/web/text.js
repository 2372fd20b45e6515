// TextEncoder, TextDecoder (UTF-8), btoa and atob.
// Invariant: text is made of pieces of bounded size, so that a long one costs no deep stack.
(function (web) {
  'use strict';
  const { apply } = Reflect;
  const { isView } = ArrayBuffer, { fromCharCode } = String, { charCodeAt } = String.prototype;
  const PIECE = 4096;
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const VALUES = new Int8Array(128).fill(-1);
  for (let i = 0; i < 64; i++) VALUES[ALPHABET.charCodeAt(i)] = i;
  const invalid = (message) => new (web.use('events').DOMException)(message, 'InvalidCharacterError');

  const bytesOf = (value, what) => {
    if (value instanceof Uint8Array) return value;
    if (isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    throw new TypeError(`${what} must be an ArrayBuffer or a view of one`);
  };
  /** Code point at a place; half of a surrogate pair is U+FFFD. */
  const pointAt = (text, at) => {
    const unit = apply(charCodeAt, text, [at]);
    if (unit < 0xd800 || unit > 0xdfff) return unit;
    const next = unit < 0xdc00 && at + 1 < text.length ? apply(charCodeAt, text, [at + 1]) : 0;
    return next >= 0xdc00 && next <= 0xdfff ? 0x10000 + ((unit - 0xd800) << 10) + (next - 0xdc00) : 0xfffd;
  };
  const width = (point) => (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);
  const put = (bytes, at, point) => {
    if (point < 0x80) {
      bytes[at] = point;
    } else if (point < 0x800) {
      bytes[at] = 0xc0 | point >> 6;
      bytes[at + 1] = 0x80 | point & 63;
    } else if (point < 0x10000) {
      bytes[at] = 0xe0 | point >> 12;
      bytes[at + 1] = 0x80 | point >> 6 & 63;
      bytes[at + 2] = 0x80 | point & 63;
    } else {
      bytes[at] = 0xf0 | point >> 18;
      bytes[at + 1] = 0x80 | point >> 12 & 63;
      bytes[at + 2] = 0x80 | point >> 6 & 63;
      bytes[at + 3] = 0x80 | point & 63;
    }
  };
  const encode = (text) => {
    let size = 0;
    for (let at = 0; at < text.length;) {
      const point = pointAt(text, at);
      size += width(point);
      at += point > 0xffff ? 2 : 1;
    }
    const bytes = new Uint8Array(size);
    for (let at = 0, end = 0; at < text.length;) {
      const point = pointAt(text, at);
      put(bytes, end, point);
      end += width(point);
      at += point > 0xffff ? 2 : 1;
    }
    return bytes;
  };
  /** The decoder of the encoding standard: what is left of a character at the end is kept if more is to come. */
  const decode = (bytes, state, isFatal, isLast) => {
    let text = '', units = [];
    const add = (point) => {
      if (point > 0xffff) units.push(0xd800 + (point - 0x10000 >> 10), 0xdc00 + (point & 0x3ff));
      else units.push(point);
      if (units.length >= PIECE) {
        text += apply(fromCharCode, undefined, units);
        units = [];
      }
    };
    const wrong = () => {
      if (isFatal) {
        const error = new TypeError('TextDecoder: the bytes are not UTF-8');
        error.code = 'ERR_ENCODING';
        throw error;
      }
      add(0xfffd);
    };
    let { point, needed, low, high } = state;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (needed === 0) {
        if (byte < 0x80) add(byte);
        else if (byte >= 0xc2 && byte <= 0xdf) { needed = 1; point = byte & 31; }
        else if (byte >= 0xe0 && byte <= 0xef) {
          if (byte === 0xe0) low = 0xa0;
          if (byte === 0xed) high = 0x9f;
          needed = 2;
          point = byte & 15;
        } else if (byte >= 0xf0 && byte <= 0xf4) {
          if (byte === 0xf0) low = 0x90;
          if (byte === 0xf4) high = 0x8f;
          needed = 3;
          point = byte & 7;
        } else wrong();
        continue;
      }
      if (byte < low || byte > high) {
        point = needed = 0;
        low = 0x80;
        high = 0xbf;
        at--;
        wrong();
        continue;
      }
      low = 0x80;
      high = 0xbf;
      point = point << 6 | byte & 63;
      if (--needed === 0) add(point);
    }
    if (isLast && needed > 0) {
      needed = 0;
      wrong();
    }
    state.point = point;
    state.needed = needed;
    state.low = low;
    state.high = high;
    return text + apply(fromCharCode, undefined, units);
  };
  const fresh = () => ({ point: 0, needed: 0, low: 0x80, high: 0xbf, isBegun: false });
  const withoutMark = (text) => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return encode(`${text}`); }
    encodeInto(text, bytes) {
      text = `${text}`;
      if (!(bytes instanceof Uint8Array)) throw new TypeError('TextEncoder.encodeInto: the destination must be a Uint8Array');
      let read = 0, written = 0;
      while (read < text.length) {
        const point = pointAt(text, read), size = width(point);
        if (written + size > bytes.length) break;
        put(bytes, written, point);
        written += size;
        read += point > 0xffff ? 2 : 1;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #isFatal; #keepsMark; #state = fresh();
    constructor(label = 'utf-8', options = {}) {
      const name = `${label}`.trim().toLowerCase();
      if (!['utf-8', 'utf8', 'unicode-1-1-utf-8', 'unicode11utf8', 'unicode20utf8', 'x-unicode20utf8'].includes(name))
        throw new RangeError(`TextDecoder: only utf-8 is known here, not ${name}`);
      this.#isFatal = Boolean(options?.fatal);
      this.#keepsMark = Boolean(options?.ignoreBOM);
    }
    get encoding() { return 'utf-8'; }
    get fatal() { return this.#isFatal; }
    get ignoreBOM() { return this.#keepsMark; }
    decode(bytes, options = {}) {
      const isLast = !options?.stream, state = this.#state;
      if (isLast) this.#state = fresh();
      const text = decode(bytes === undefined ? new Uint8Array(0) : bytesOf(bytes, 'TextDecoder.decode: the input'), state, this.#isFatal, isLast);
      if (state.isBegun || text === '') return text;
      state.isBegun = true;
      return this.#keepsMark ? text : withoutMark(text);
    }
  }

  /** Base64 of bytes that `byteAt` gives. */
  const toBase64 = (length, byteAt) => {
    let text = '', units = [];
    for (let at = 0; at < length; at += 3) {
      const left = length - at;
      const three = byteAt(at) << 16 | (left > 1 ? byteAt(at + 1) << 8 : 0) | (left > 2 ? byteAt(at + 2) : 0);
      units.push(
        apply(charCodeAt, ALPHABET, [three >> 18]), apply(charCodeAt, ALPHABET, [three >> 12 & 63]),
        left > 1 ? apply(charCodeAt, ALPHABET, [three >> 6 & 63]) : 61, left > 2 ? apply(charCodeAt, ALPHABET, [three & 63]) : 61,
      );
      if (units.length >= PIECE) {
        text += apply(fromCharCode, undefined, units);
        units = [];
      }
    }
    return text + apply(fromCharCode, undefined, units);
  };
  /** The bytes of base64, as forgiving as `atob` is; `undefined` if it is none. */
  const fromBase64 = (text) => {
    text = text.replace(/[\t\n\f\r ]+/g, '');
    if (text.length % 4 === 0) text = text.replace(/==?$/, '');
    if (text.length % 4 === 1) return undefined;
    const bytes = new Uint8Array(Math.floor(text.length * 3 / 4));
    for (let at = 0, end = 0, bits = 0, held = 0; at < text.length; at++) {
      const unit = apply(charCodeAt, text, [at]), value = unit < 128 ? VALUES[unit] : -1;
      if (value < 0) return undefined;
      held = held << 6 | value;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        bytes[end++] = held >> bits;
        held &= (1 << bits) - 1;
      }
    }
    return bytes;
  };

  return {
    TextEncoder, TextDecoder, encode, bytesOf, fromBase64,
    utf8: (bytes) => withoutMark(decode(bytes, fresh(), false, true)),
    base64: (bytes) => toBase64(bytes.length, (at) => bytes[at]),
    btoa: function btoa(data) {
      const text = `${data}`;
      return toBase64(text.length, (at) => {
        const unit = apply(charCodeAt, text, [at]);
        if (unit > 255) throw invalid('btoa: a character is beyond U+00FF; encode the text with TextEncoder first');
        return unit;
      });
    },
    atob: function atob(data) {
      const bytes = fromBase64(`${data}`);
      if (bytes === undefined) throw invalid('atob: the text is not base64');
      let text = '';
      for (let at = 0; at < bytes.length; at += PIECE) text += apply(fromCharCode, undefined, bytes.subarray(at, at + PIECE));
      return text;
    },
  };
})
