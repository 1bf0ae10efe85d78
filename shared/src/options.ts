/**
 * What JavaScript passes to the library, checked where it comes in. Types say nothing there: a misspelt option would be
 * left out silently, and a client in the place of an adapter would fail each message by itself.
 *
 * Every refusal is a ConfigError `INVALID_OPTION` of the form "path is value; accepted: what". An unknown name is
 * refused with the nearest one that there is.
 */
import { type Duration, toMilliseconds } from './duration.ts';
import { type ConfigError, refused, refusedAs } from './errors.ts';
import { propertyOf } from './shown-value.ts';

/** Throws ConfigError naming `path` unless the value is accepted. */
export type Check = (path: string, value: unknown) => void;

/** One check for each option of a type: a new option cannot be forgotten. */
export type Shape<Options> = Readonly<Record<keyof Options, Check>>;

/**
 * Checks an object of options: that it is one, that it has no other names, and each value that is there. `path`
 * precedes the names where the object is an option itself (`retry` for `retry.min`).
 */
export function checkOptions<Options extends object>(
  options: unknown,
  shape: Shape<Required<Options>>,
  path = '',
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw refused(path === '' ? 'options' : path, options, `an object with ${Object.keys(shape).join(', ')}`);
  }
  const checks: Readonly<Record<string, Check>> = shape;
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(checks, name)) throw unknownName(at(name), name, Object.keys(checks));
  }
  for (const [name, check] of Object.entries(checks)) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined || needed.has(check)) check(at(name), value);
  }
}

const unknownName = (path: string, name: string, known: readonly string[]): ConfigError => {
  const near = nearest(name, known);
  const others = known.filter((one) => one !== near);
  const listed = near === undefined ? others.join(', ') : [`${near} (the nearest)`, ...others].join(', ');
  return refusedAs(path, 'no option', listed);
};

const needed = new WeakSet<Check>();

/** The same check for an option that must be there. */
export function required(check: Check): Check {
  const own: Check = (path, value) => check(path, value);
  needed.add(own);
  return own;
}

export const anything: Check = () => undefined;
/** A length of time, zero included. */
export const duration: Check = (path, value) => void toMilliseconds(value as string, path);
/**
 * A length of time within limits, the limits included. What bounds a wait is at least `1ms`: a limit of zero lets
 * nothing finish.
 */
export const durationFrom =
  (least: Duration, most?: Duration): Check =>
  (path, value) => {
    const milliseconds = toMilliseconds(value as string, path);
    if (milliseconds < toMilliseconds(least)) throw refused(path, value, `at least ${least}`);
    if (most !== undefined && milliseconds > toMilliseconds(most))
      throw refused(path, value, `at most ${most}`);
  };
export const text: Check = (path, value) => {
  if (typeof value !== 'string' || value === '') throw refused(path, value, 'a text');
};
/** As `text`, and empty too: what the text must be is checked elsewhere. */
export const anyText: Check = (path, value) => {
  if (typeof value !== 'string') throw refused(path, value, 'a text');
};
/** How long something is kept once it is done. A store's times end in the year 9999: beyond, each write would fail. */
export const keptFor = (least: Duration): Check => durationFrom(least, '36500d');
/** A consumer, a source. Half a surrogate pair has no bytes of its own: names that differ in it alone would be one. */
export const name: Check = (path, value) => {
  if (typeof value !== 'string' || value === '' || !value.isWellFormed())
    throw refused(path, value, 'a name');
};
export const fullTopic: Check = (path, value) => {
  if (typeof value !== 'string' || !FULL_TOPIC.test(value))
    throw refused(path, value, 'projects/PROJECT/topics/TOPIC');
};
const FULL_TOPIC = /^projects\/[^/\s]+\/topics\/[^/\s]+$/;
/** A host name, an IPv4 address, or an IPv6 address in brackets; then the port. */
export const address: Check = (path, value) => void hostAndPort(path, value);
export function hostAndPort(path: string, value: unknown): Readonly<{ host: string; port: number }> {
  const [, host, port] = (typeof value === 'string' && HOST_AND_PORT.exec(value)) || [];
  if (host !== undefined && Number(port) >= 1 && Number(port) <= 65_535) return { host, port: Number(port) };
  throw refused(path, value, 'host:port, for example 127.0.0.1:8085 or [::1]:8085');
}
const HOST_AND_PORT = /^(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252}):(\d{1,5})$/;
export const flag: Check = (path, value) => {
  if (typeof value !== 'boolean') throw refused(path, value, 'true or false');
};
export const callable: Check = (path, value) => {
  if (typeof value !== 'function') throw refused(path, value, 'a function');
};
export const number: Check = (path, value) => {
  if (typeof value !== 'number' || Number.isNaN(value)) throw refused(path, value, 'a number');
};
export const isObject: Check = (path, value) => {
  if (typeof value !== 'object' || value === null) throw refused(path, value, 'an object');
};
export const bytes: Check = (path, value) => {
  if (!(value instanceof Uint8Array)) throw refused(path, value, 'bytes, as a Buffer or a Uint8Array');
};
export const signal: Check = (path, value) => {
  if (!(value instanceof AbortSignal)) throw refused(path, value, 'an AbortSignal');
};
export const whole =
  (from: number, to = Number.MAX_SAFE_INTEGER): Check =>
  (path, value) => {
    if (Number.isSafeInteger(value) && Number(value) >= from && Number(value) <= to) return;
    const upTo = to === Number.MAX_SAFE_INTEGER ? '' : ` to ${to}`;
    throw refused(path, value, `a whole number from ${from}${upTo}`);
  };
export const oneOf =
  (...accepted: readonly string[]): Check =>
  (path, value) => {
    if (typeof value !== 'string' || !accepted.includes(value))
      throw refused(path, value, accepted.join(', '));
  };
export const listOf =
  (check: Check, what = 'a list'): Check =>
  (path, value) => {
    if (!Array.isArray(value)) throw refused(path, value, what);
    for (const [index, item] of value.entries()) check(`${path}[${index}]`, item);
  };
export const objectOf =
  <Options extends object>(shape: Shape<Required<Options>>): Check =>
  (path, value) =>
    checkOptions<Options>(value, shape, path);

/** An object with these, which may have more: one that the library answered before is handed in again. */
export const holding =
  (checks: Readonly<Record<string, Check>>): Check =>
  (path, value) => {
    isObject(path, value);
    for (const [name, check] of Object.entries(checks)) check(`${path}.${name}`, propertyOf(value, name));
  };

/** Pauses between attempts: the first one, doubled with each failure in a row, up to the longest. */
export type RetryPauses = Readonly<{
  /** After the first failure; at least `1ms`. The default is that of the function. */
  min?: Duration;
  /** The longest; not below `min`. The default is that of the function. */
  max?: Duration;
}>;
export const RETRY_SHAPE: Shape<Required<RetryPauses>> = {
  min: durationFrom('1ms'),
  max: durationFrom('1ms'),
};
/** In milliseconds. Throws ConfigError where `max` is below `min`. */
export function retryPauses(
  { min, max }: RetryPauses = {},
  standardMin: Duration,
  standardMax: Duration,
  path = '',
): Readonly<{ minMs: number; maxMs: number }> {
  const of = path === '' ? '' : `${path}.`;
  checkAtMost(
    { path: `${of}retry.min`, given: min, standard: standardMin },
    { path: `${of}retry.max`, given: max, standard: standardMax },
  );
  return { minMs: toMilliseconds(min ?? standardMin), maxMs: toMilliseconds(max ?? standardMax) };
}

/** A length of time among options, and what it is where it is not given. */
type Length = Readonly<{ path: string; given: Duration | undefined; standard: Duration }>;

/**
 * Two lengths of time that are right by themselves, and must fit each other: throws ConfigError with both values unless
 * the first is at most the second, or below it. It names the one that was given, and of two the first.
 */
export const checkAtMost = (small: Length, large: Length, because?: string): void =>
  checkFit(small, large, false, because);
export const checkBelow = (small: Length, large: Length, because?: string): void =>
  checkFit(small, large, true, because);

function checkFit(small: Length, large: Length, isBelow: boolean, because = ''): void {
  const [low, high] = [small.given ?? small.standard, large.given ?? large.standard];
  const [lowMs, highMs] = [toMilliseconds(low, small.path), toMilliseconds(high, large.path)];
  if (isBelow ? lowMs < highMs : lowMs <= highMs) return;
  const reason = because === '' ? '' : `, because ${because}`;
  if (small.given === undefined && large.given !== undefined) {
    const word = isBelow ? 'more than' : 'at least';
    throw refused(large.path, high, `${word} ${small.path} ("${low}")${reason}`);
  }
  throw refused(small.path, low, `${isBelow ? 'below' : 'at most'} ${large.path} ("${high}")${reason}`);
}

/** An object with these methods. `example` says where one comes from. */
export const port =
  (methods: readonly string[], example: string): Check =>
  (path, value) => {
    const missing = methods.find((method) => typeof propertyOf(value, method) !== 'function');
    if (missing === undefined) return;
    throw refused(path, value, `${example}; it has no method ${missing}`);
  };

export const clock = port(['now', 'monotonic', 'after'], 'a clock, for example systemClock()');
export const log = port(['info', 'warn', 'error'], 'a log, for example jsonLog(console.log)');
/** Of a sweep or a wake-up: what `contextFor` makes. */
export const sweepContext = holding({ consumer: text, deadline: number, signal, log });
export const publisher = port(['publish'], 'a publisher, for example pubsubPublisher(pubsub)');
export const taskQueue = port(['create'], 'a task queue, for example cloudTasksQueue(client, options)');
export const payloads = port(
  ['put', 'get', 'done', 'sweep'],
  'a payload store, for example firestorePayloads(firestore)',
);
export const transaction = port(['get', 'getAll', 'set'], "a transaction of Firestore's `runTransaction`");
export const ledger = port(
  ['change', 'read', 'due', 'pending', 'list'],
  'a ledger, for example firestoreLedger(firestore)',
);

/** The name with the fewest changes of a letter, where they are few. */
function nearest(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(name.length / 2)) + 1;
  for (const one of known) {
    const changes = distance(name.toLowerCase(), one.toLowerCase());
    if (changes < least) [best, least] = [one, changes];
  }
  return best;
}

/** https://en.wikipedia.org/wiki/Levenshtein_distance */
function distance(left: string, right: string): number {
  let above = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [row, letter] of Array.from(left).entries()) {
    const line = [row + 1];
    for (const [column, other] of Array.from(right).entries()) {
      const changed = (above[column] ?? 0) + (letter === other ? 0 : 1);
      line.push(Math.min(changed, (above[column + 1] ?? 0) + 1, (line[column] ?? 0) + 1));
    }
    above = line;
  }
  return above[right.length] ?? 0;
}
