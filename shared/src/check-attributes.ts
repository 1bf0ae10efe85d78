/**
 * Attributes that look like those of the wire contract and are not: a misspelt name, an option that this function does
 * not apply, a message without a number where streams are the function's only work. The contract passes them on,
 * because they may be meant for a subscriber or a function behind; but what the publisher asked for does not happen, so
 * it is said.
 *
 * One warning a minute for each name, and a count. Where it is strict they are dead letters instead.
 */
import { ATTRIBUTE, PUBLISHED_ATTRIBUTES } from './attributes.ts';
import { type Clock, systemClock } from './clock.ts';
import { PermanentError, refusedAs } from './errors.ts';
import type { Middleware } from './handler.ts';
import type { Attributes, Message } from './message.ts';
import { checkOptions, clock as aClock, flag, listOf, oneOf, required } from './options.ts';
import { deadLetter } from './outcome.ts';
import { ATTR, count } from './telemetry/instruments.ts';

/** What a chain of stages does of what a message may ask for. */
export type AppliedOption = 'later' | 'inOrder';

export type CheckAttributesOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /**
   * What a message asks for beyond these is passed on with a warning. `dedupId` is an identity, and of use everywhere.
   */
  applied: readonly AppliedOption[];
  /** Whether each message should have a `sequence`. Default: false. */
  expectsSequence?: boolean;
  /** Gives what looks wrong to the dead letters (`ATTRIBUTE_REFUSED`). Default: false. */
  strict?: boolean;
}>;

type Finding = Readonly<{
  kind: 'misspelled' | 'not_applied' | 'missing';
  /** Of the contract. */
  meant: string;
  /** As it is written on the message. */
  name: string;
  text: string;
}>;

const MINUTE_MS = 60_000;
/** Names of which the warning is remembered: a publisher may invent any number of them. */
const NAMES = 100;

/**
 * Place it inside `deadLettering` and outside everything else. Never changes a message. Throws ConfigError
 * `INVALID_OPTION` for an option that is unknown or not understood.
 *
 * @example
 * compose(handler, [deadLetters, checkAttributes({ applied: ['later'] }), delay(queue, options)]);
 */
export function checkAttributes(options: CheckAttributesOptions): Middleware {
  checkOptions<CheckAttributesOptions>(options, {
    clock: aClock,
    applied: required(listOf(oneOf('later', 'inOrder'), 'a list of later and inOrder')),
    expectsSequence: flag,
    strict: flag,
  });
  const { clock = systemClock(), strict = false, expectsSequence = false, applied } = options;
  if (expectsSequence && !applied.includes('inOrder'))
    throw refusedAs(
      'expectsSequence',
      `true and applied ${JSON.stringify(applied)}`,
      'applied with inOrder, or each message is suspicious: with its sequence and without',
    );
  /** By name: when it was warned of last, on the monotonic clock; the oldest first. */
  const told = new Map<string, number>();

  const mayTell = (name: string): boolean => {
    const now = clock.monotonic();
    if (now - (told.get(name) ?? -Infinity) < MINUTE_MS) return false;
    told.delete(name);
    told.set(name, now);
    const [oldest] = told.keys();
    if (told.size > NAMES && oldest !== undefined) told.delete(oldest);
    return true;
  };

  return (next) => async (message, context) => {
    const findings = findingsIn(message, options);
    for (const { kind, meant, name, text } of findings) {
      const { consumer } = context;
      count('suspiciousAttributes', {
        [ATTR.consumer]: consumer,
        [ATTR.reason]: meant,
        [ATTR.answer]: kind,
      });
      if (strict || !mayTell(name)) continue;
      const fields = { event: 'suspicious_attribute', attribute: shown(name), messageId: message.id };
      context.log.warn(`${text}; it is passed on`, fields);
    }
    const [first] = findings;
    if (!strict || first === undefined) return next(message, context);
    return deadLetter(new PermanentError('ATTRIBUTE_REFUSED', `${first.text}; STRICT_ATTRIBUTES refuses it`));
  };
}

function findingsIn({ attributes }: Message, options: CheckAttributesOptions): readonly Finding[] {
  return [...misspelled(attributes), ...notApplied(attributes, options), ...missing(attributes, options)];
}

function* misspelled(attributes: Attributes): Generator<Finding> {
  for (const name of Object.keys(attributes)) {
    const meant = CONTRACT.get(plain(name));
    if (meant === undefined || meant === name) continue;
    const text = `attribute ${shown(name)} is not ${meant}, which it looks like; accepted: ${meant}`;
    yield { kind: 'misspelled', meant, name, text };
  }
}

function* notApplied(attributes: Attributes, { applied }: CheckAttributesOptions): Generator<Finding> {
  const askedFor: readonly (readonly [string, AppliedOption])[] = [
    // `0` asks for nothing.
    ...(attributes[ATTRIBUTE.delay] === '0' ? [] : [[ATTRIBUTE.delay, 'later'] as const]),
    [ATTRIBUTE.deliverAt, 'later'],
    // With a fencing token a function in front has applied it, and it stays for information.
    ...(attributes[ATTRIBUTE.fencingToken] === undefined ? [[ATTRIBUTE.sequence, 'inOrder'] as const] : []),
  ];
  for (const [name, by] of askedFor) {
    if (attributes[name] === undefined || applied.includes(by)) continue;
    const text = `attribute ${name} asks for what this function does not do; accepted: messages without it`;
    yield { kind: 'not_applied', meant: name, name, text };
  }
}

function* missing(
  attributes: Attributes,
  { expectsSequence = false }: CheckAttributesOptions,
): Generator<Finding> {
  const name = ATTRIBUTE.sequence;
  if (!expectsSequence || attributes[name] !== undefined) return;
  const text = `attribute ${name} is missing, and nothing is put in order without it; accepted: messages with it`;
  yield { kind: 'missing', meant: name, name, text };
}

/** Without what a publisher may have spelled in another way. */
const plain = (name: string): string => name.toLowerCase().replace(/[-_.\s]/g, '');
const CONTRACT = new Map(PUBLISHED_ATTRIBUTES.map((name) => [plain(name), name]));

const shown = (name: string): string => (name.length > 60 ? `${name.slice(0, 60)}…` : name);
