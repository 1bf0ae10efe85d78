/**
 * Looking at streams, and helping one that is blocked: the operator's side of in-order delivery.
 *
 * Nothing here runs a handler: `resume` and `skip` change the stream in one commit, and the next sweep goes on with it.
 * Both may be repeated. What is skipped as poison has its dead letter first; a crash in between publishes it twice.
 */
import { identifierHash } from '../hash.ts';
import { withSignal } from '../async/time-limit.ts';
import { contextFor } from '../context.ts';
import { PermanentError, TransientError } from '../errors.ts';
import { silent } from '../log.ts';
import { anyText, checkOptions, oneOf, required, type Shape, text, whole } from '../options.ts';
import { type Decided, decidedCommit, type Looked } from './decided-commit.ts';
import { type StreamPolicy, streamRef } from './options.ts';
import { deadLetterPublisher, isDeadLettered, loadHeld } from './failure.ts';
import { discard } from './stored-form.ts';
import {
  hasLiveLease,
  isSkipped,
  NO_GAP,
  skippingTo,
  type StreamFields,
  type StreamState,
} from './stream-state.ts';
import type { HeldMessage, ListedState, StreamRef } from './stream-store.ts';
import type { Gap } from './gaps.ts';

/** `source` is ignored, and may be absent, with `streamScope: 'consumer'`. */
export type StreamName = Readonly<{ consumer: string; source?: string; key: string }>;

export type StreamListing = Readonly<{
  streams: readonly StreamView[];
  /** Streams whose document this version cannot read, with the reason. */
  unreadable: readonly Readonly<{ key: string; source: string; error: unknown }>[];
  /** For the next page; absent on the last one. */
  nextPageToken?: string;
}>;

export type StreamListOptions = Readonly<{
  /** Default `any`, in no particular order; the others come with the oldest first. */
  state?: ListedState;
  /** 1 to 500, default 100. A page may be shorter and still have a next one. */
  pageSize?: number;
  /** `nextPageToken` of the page before, with the same state (default: the first page). */
  pageToken?: string;
}>;

/** Each method rejects with ConfigError `INVALID_OPTION` for an argument that is not of its type. */
export type StreamOperations = Readonly<{
  /** Undefined where no message of the stream has come. Two reads, and one for each 1,000 messages that are held. */
  inspect(stream: StreamName): Promise<StreamDetails | undefined>;
  /** Streams of a consumer, of all its sources. Rejects with ConfigError `INVALID_OPTION`. */
  list(consumer: string, options?: StreamListOptions): Promise<StreamListing>;
  /**
   * Lets a blocked stream try its number again, before anything behind it. False where it is not blocked. Rejects with
   * PermanentError `STREAM_UNKNOWN`.
   */
  resume(stream: StreamName): Promise<boolean>;
  /**
   * Skips what the stream waits for, up to and with `number`; the numbers are late from then on. Where the stream is
   * blocked, `number` is the one that it is blocked at, and goes to the dead letters. True where it is skipped, also by
   * an earlier call; false where it is done.
   * Rejects with PermanentError `STREAM_UNKNOWN`, `NUMBER_HELD` (it waits its turn and will run),
   * `DEAD_LETTER_TOPIC_MISSING`, `SEQUENCE_TOO_FAR_AHEAD`, `NO_PAYLOAD_STORE`; TransientError `STREAM_BUSY` while a
   * process works on the stream, `DEAD_LETTER_UNPUBLISHED`.
   */
  skip(stream: StreamName, number: number): Promise<boolean>;
}>;

const NAME_SHAPE: Shape<Required<StreamName>> = {
  consumer: required(text),
  source: anyText,
  key: required(text),
};
const LARGEST_PAGE = 500;
const LIST_SHAPE: Shape<Required<StreamListOptions>> = {
  state: oneOf('any', 'due', 'waiting', 'blocked'),
  pageSize: whole(1, LARGEST_PAGE),
  pageToken: text,
};
/** How long the publish of a dead letter may take. */
const PUBLISH_MS = 30_000;

/** `hasDeadLetters`: whether the options name where poison goes. Without it poison is not skipped. */
export function streamAdmin(policy: StreamPolicy, hasDeadLetters: boolean): StreamOperations {
  const { store, payloads, maxAhead } = policy;
  const refOf = (stream: StreamName): StreamRef => {
    checkOptions<StreamName>(stream, NAME_SHAPE, 'stream');
    const { consumer, source = '', key } = stream;
    return streamRef(policy, consumer, source, key);
  };

  return {
    async inspect(stream) {
      const ref = refOf(stream);
      const { state, nowMs } = await store.read(ref);
      if (state === undefined) return undefined;
      const [[first], counted] = await Promise.all([
        store.held(ref, state.last + 1, 1),
        store.countHeld(ref),
      ]);
      return streamDetails(streamView(ref, state, nowMs), state, counted, first);
    },

    async list(consumer, options = {}) {
      text('consumer', consumer);
      checkOptions<StreamListOptions>(options, LIST_SHAPE);
      const { state = 'any', pageSize = 100, pageToken } = options;
      const after = pageToken === undefined ? {} : { after: pageToken };
      const { streams, next } = await store.list(consumer, { state, limit: pageSize, ...after });
      return {
        streams: streams.flatMap((one) =>
          'state' in one ? [streamView(one.ref, one.state, one.nowMs)] : [],
        ),
        unreadable: streams.flatMap((one) =>
          'state' in one ? [] : [{ key: one.ref.key, source: one.ref.source, error: one.error }],
        ),
        ...(next !== undefined && { nextPageToken: next }),
      };
    },

    async resume(stream) {
      const ref = refOf(stream);
      return (await decidedCommit(policy, ref, resuming)) ?? unknown(ref);
    },

    async skip(stream, number) {
      const ref = refOf(stream);
      let answer = (await decidedCommit(policy, ref, skipping(number, maxAhead, undefined))) ?? unknown(ref);
      if (answer.kind === 'poison') {
        const { held } = answer;
        if (!hasDeadLetters) {
          const text = `number ${number} is held: give a dead-letter topic, so that it is not lost`;
          throw new PermanentError('DEAD_LETTER_TOPIC_MISSING', text);
        }
        await publishPoison(policy, ref, answer);
        answer = (await decidedCommit(policy, ref, skipping(number, maxAhead, held))) ?? unknown(ref);
        if (answer.kind === 'skipped') await discard(payloads, { log: silent }, [held]);
      }
      switch (answer.kind) {
        case 'skipped':
          return true;
        case 'passed':
          return false;
        case 'tooFar':
          throw new PermanentError(
            'SEQUENCE_TOO_FAR_AHEAD',
            `the number is ${number}; accepted: a whole number, at most ${maxAhead} beyond the last one done, ${answer.last}`,
          );
        case 'held':
          throw new PermanentError(
            'NUMBER_HELD',
            `number ${answer.number} is here and will run in its turn; accepted: a missing number before it, or the one at which the stream is blocked`,
          );
        case 'busy':
          throw new TransientError(
            'STREAM_BUSY',
            'a process works on the stream, or died in it; try again soon',
          );
        case 'poison':
          throw new TransientError('STREAM_BUSY', 'the stream changed meanwhile; try again');
      }
    },
  };
}

/** What goes on with a stream that waits for an operator. */
const goingOn = (nowMs: number): StreamFields => ({
  blocked: null,
  attempts: 0,
  nextTryAt: 0,
  readyAt: nowMs,
});

/** Lets a blocked stream go on with the number that it is blocked at. */
const resuming = ({ state, nowMs }: Looked): Decided<boolean> =>
  state.blocked === null ? { result: false } : { result: true, fields: goingOn(nowMs) };

type Skipped =
  | Readonly<{ kind: 'skipped' }>
  /** The stream has gone past it. */
  | Readonly<{ kind: 'passed' }>
  | Readonly<{ kind: 'tooFar'; last: number }>
  /** A process works on the stream. */
  | Readonly<{ kind: 'busy' }>
  /** A message with this number waits, and will run: only poison is skipped. */
  | Readonly<{ kind: 'held'; number: number }>
  /** The message at which the stream is blocked needs its dead letter first. */
  | Readonly<{ kind: 'poison'; held: HeldMessage; blocked: NonNullable<StreamState['blocked']> }>;

/**
 * Skips what the stream waits for, up to and with `number`: missing numbers, or the poison at which it is blocked.
 * `deadLettered` is the held message that has its dead letter.
 */
function skipping(number: number, maxAhead: number, deadLettered: HeldMessage | undefined) {
  return ({ state, first, nowMs }: Looked): Decided<Skipped> => {
    if (!Number.isSafeInteger(number) || number < 1 || number > state.last + maxAhead)
      return { result: { kind: 'tooFar', last: state.last } };
    // Also its own commit, whose reply was lost.
    if (number <= state.last) return { result: { kind: isSkipped(state, number) ? 'skipped' : 'passed' } };
    if (state.lease !== null) return { result: { kind: 'busy' } };
    const result = { kind: 'skipped' } as const;
    // A suspect that comes next keeps the attempt that its start in the batch was.
    const fields = { ...goingOn(nowMs), ...skippingTo(state, number), ...NO_GAP };
    if (first === undefined || first.number > number) return { result, fields };
    const isPoison = first.number === number && number === state.last + 1;
    if (!isPoison || state.blocked === null) return { result: { kind: 'held', number: first.number } };
    if (deadLettered?.hash !== first.hash)
      return { result: { kind: 'poison', held: first, blocked: state.blocked } };
    return { result, fields: { ...fields, held: state.held - 1 }, remove: [number] };
  };
}

async function publishPoison(
  policy: StreamPolicy,
  ref: StreamRef,
  { held, blocked }: Extract<Skipped, { kind: 'poison' }>,
): Promise<void> {
  const { clock, payloads } = policy;
  const { consumer } = ref;
  const deadline = clock.monotonic() + PUBLISH_MS;
  await withSignal(clock, PUBLISH_MS, new AbortController().signal, async (signal) => {
    const context = contextFor(clock, { consumer, source: held.source, deadline, signal });
    const publishDeadLetter = deadLetterPublisher(policy, new PermanentError(blocked.code, blocked.text));
    const outcome = await publishDeadLetter(await loadHeld(payloads, ref, held), context);
    if (isDeadLettered(outcome)) return;
    const cause = outcome.kind === 'ack' ? undefined : outcome.error;
    const text = `the dead letter of number ${held.number} was not published`;
    throw new TransientError('DEAD_LETTER_UNPUBLISHED', text, { cause });
  });
}

function unknown({ consumer, source, key }: StreamRef): never {
  const from = source === '' ? '' : ` through ${source}`;
  const text = `no message of sequenceKey ${identifierHash(key)} has come to ${consumer}${from}`;
  throw new PermanentError('STREAM_UNKNOWN', text);
}

/**
 * `blocked`: stopped at poison. `running`: a process works on it. `stalled`: that process died, and the next sweep takes
 * over. `retrying`: its next message failed and is tried again. `due`: the next sweep, or delivery, goes on with it.
 * `waiting`: for a number that has not come. `idle`: nothing waits.
 */
export type StreamStatus = 'blocked' | 'running' | 'stalled' | 'retrying' | 'due' | 'waiting' | 'idle';

export type StreamView = Readonly<{
  key: string;
  /** Empty where a stream spans all sources of its consumer. */
  source: string;
  status: StreamStatus;
  /** The highest number that is done or skipped. */
  last: number;
  /** The number that it waits for, or works on. */
  next: number;
  /** Messages that are held. */
  held: number;
  /** Failures and died processes of `next`. */
  attempts: number;
  /** When a `next` that failed is tried again. */
  nextTryAt?: Date;
  /** Since when messages wait for a number that has not come. */
  waitingSince?: Date;
  /** Why, and since when, it is blocked. */
  poison?: Readonly<{ number: number; code: string; text: string; at: Date }>;
  /** Until when a process has the stream. */
  leasedUntil?: Date;
  epoch?: string;
  /** Numbers that were skipped; the oldest of more than 100 ranges are joined. */
  skipped: readonly Readonly<{ from: number; to: number }>[];
}>;

export type StreamDetails = StreamView &
  Readonly<{
    /** The first number that is held. */
    firstHeld?: number;
    /** The numbers that are missing in front of it. */
    gap?: Gap;
    /** Names the lease of the process that has the stream. */
    leaseOwner?: string;
    /** Messages that were counted, where they are other than `held` says: another program has changed them. */
    counted?: number;
  }>;

function streamView({ key, source }: StreamRef, state: StreamState, nowMs: number): StreamView {
  const { last, held, attempts, nextTryAt, waitingSince, blocked, lease, epoch, skipped } = state;
  return {
    key,
    source,
    status: statusOf(state, nowMs),
    last,
    next: last + 1,
    held,
    attempts,
    ...(nextTryAt > 0 && { nextTryAt: new Date(nextTryAt) }),
    ...(waitingSince !== null && { waitingSince: new Date(waitingSince) }),
    ...(blocked !== null && {
      poison: { number: last + 1, code: blocked.code, text: blocked.text, at: new Date(blocked.atMs) },
    }),
    ...(lease !== null && { leasedUntil: new Date(lease.untilMs) }),
    ...(epoch !== null && { epoch }),
    skipped,
  };
}

function streamDetails(
  view: StreamView,
  state: StreamState,
  counted: number,
  first: HeldMessage | undefined,
): StreamDetails {
  const isGap = first !== undefined && first.number > view.next;
  return {
    ...view,
    ...(first !== undefined && { firstHeld: first.number }),
    ...(isGap && { gap: { from: view.next, to: first.number - 1 } }),
    ...(state.lease !== null && { leaseOwner: state.lease.owner }),
    ...(counted !== state.held && { counted }),
  };
}

function statusOf(state: StreamState, nowMs: number): StreamStatus {
  if (state.blocked !== null) return 'blocked';
  if (hasLiveLease(state, nowMs)) return 'running';
  if (state.lease !== null) return 'stalled';
  if (state.nextTryAt > nowMs) return 'retrying';
  if (state.readyAt !== null) return 'due';
  return state.waitingSince === null ? 'idle' : 'waiting';
}
