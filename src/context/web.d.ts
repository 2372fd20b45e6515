
/** Runs a function once, after `delay` milliseconds of the host's clock. */
declare function setTimeout<A extends unknown[]>(callback: (...values: A) => unknown, delay?: number, ...values: A): number;
declare function clearTimeout(id: number | undefined): void;
/** Runs a function again and again; an interval is at least 1 ms. */
declare function setInterval<A extends unknown[]>(callback: (...values: A) => unknown, delay?: number, ...values: A): number;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(callback: () => void): void;
declare var performance: {
  /** Milliseconds on the host's monotonic clock. */
  now(): number;
};

interface DOMException extends Error {
  readonly name: string;
  readonly message: string;
  readonly code: number;
}
declare var DOMException: { prototype: DOMException; new (message?: string, name?: string): DOMException };

interface Event {
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  preventDefault(): void;
  stopImmediatePropagation(): void;
}
declare var Event: { prototype: Event; new (type: string, init?: { cancelable?: boolean }): Event };
type EventListener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };
interface EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: EventListener | null): void;
  dispatchEvent(event: Event): boolean;
}
declare var EventTarget: { prototype: EventTarget; new (): EventTarget };
interface AbortSignal extends EventTarget {
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => unknown) | null;
  throwIfAborted(): void;
}
declare var AbortSignal: {
  prototype: AbortSignal;
  abort(reason?: unknown): AbortSignal;
  /** Aborts after so many milliseconds, with a `TimeoutError`. */
  timeout(milliseconds: number): AbortSignal;
  /** Aborts with the first of these. */
  any(signals: Iterable<AbortSignal>): AbortSignal;
};
interface AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare var AbortController: { prototype: AbortController; new (): AbortController };

type IntegerArray =
  | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array;
/** From the host's entropy; seeded in a scenario. */
declare var crypto: {
  randomUUID(): string;
  /** At most 65536 bytes. */
  getRandomValues<T extends IntegerArray>(array: T): T;
};

interface TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, destination: Uint8Array): { read: number; written: number };
}
declare var TextEncoder: { prototype: TextEncoder; new (): TextEncoder };
interface TextDecoder {
  readonly encoding: "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}
/** Knows UTF-8 only. */
declare var TextDecoder: { prototype: TextDecoder; new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder };
declare function btoa(data: string): string;
declare function atob(data: string): string;

interface URLSearchParams extends Iterable<[string, string]> {
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, parameters: URLSearchParams) => unknown, receiver?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  toString(): string;
}
declare var URLSearchParams: {
  prototype: URLSearchParams;
  new (init?: string | Record<string, string> | Iterable<[string, string]>): URLSearchParams;
};
interface URL {
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  hash: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
  toJSON(): string;
}
declare var URL: {
  prototype: URL;
  new (address: string | URL, base?: string | URL): URL;
  canParse(address: string | URL, base?: string | URL): boolean;
  parse(address: string | URL, base?: string | URL): URL | null;
};

/** A deep copy; what cannot be copied is a `DataCloneError`. */
declare function structuredClone<T>(value: T): T;

type HeadersInit = Headers | Record<string, string> | Iterable<[string, string]>;
interface Headers extends Iterable<[string, string]> {
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => unknown, receiver?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
}
declare var Headers: { prototype: Headers; new (init?: HeadersInit): Headers };
interface Response {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: "basic";
  readonly headers: Headers;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  arrayBuffer(): Promise<ArrayBuffer>;
  clone(): Response;
}
declare var Response: { prototype: Response };
interface FetchOptions {
  method?: string;
  headers?: HeadersInit;
  /** Text, bytes, form data, or plain data that is sent as JSON. */
  body?: string | ArrayBuffer | ArrayBufferView | URLSearchParams | object | null;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
}
/** One HTTP exchange through the host's egress; denied unless the config allows the host. */
declare function fetch(address: string | URL, options?: FetchOptions): Promise<Response>;
