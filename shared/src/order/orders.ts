/**
 * Looking at ordered streams, and helping one that stands still: the operator's side of in-order delivery.
 *
 * Nothing here runs a handler: `resume` and `skip` change the key in one transaction, and the next sweep goes on with
 * it. Both may be repeated. What is given up has its dead letter first; a crash in between publishes it twice.
 */
import { PermanentError, TransientError } from '../errors.ts';
import { compose, type Context, type Middleware } from '../handler.ts';
import { type Log, silent } from '../log.ts';
import { deadLetter } from '../outcome.ts';
import type { PayloadRoom } from '../payload/payload-room.ts';
import { type Clock, systemClock } from '../clock.ts';
import { resuming, type Skipped, skipping } from './giving-up.ts';
import { freshKey } from './key-state.ts';
import { type StreamDetails, streamDetails, type StreamView, streamView } from './orders-view.ts';
import type { HeldMessage, KeyRef, ListedState, OrderStore } from './order-store.ts';
import { discard } from './hold.ts';
import { readable } from './poison.ts';

export type OrdersOptions = Readonly<{
  /** The consuming function or subscriber whose streams these are. */
  consumer: string;
  /** As `deadLettering(publisher, topic)` makes it: where `skip` puts poison. Without it poison is not skipped. */
  deadLetters?: Middleware;
  /** The first number of a stream that is not known yet, as for `inOrder` (default 1). */
  start?: number;
  /** The room of `inOrder`, where large messages wait: needed to skip one of them. */
  payloads?: PayloadRoom;
  clock?: Clock;
  log?: Log;
}>;

export type StreamPage = Readonly<{
  streams: readonly StreamView[];
  /** Streams whose document nobody here can read, with the reason. */
  unreadable: readonly Readonly<{ key: string; error: unknown }>[];
  /** For the next page; absent on the last one. */
  nextPageToken?: string;
}>;

export type StreamListOptions = Readonly<{
  /** Default `any`, in no particular order; the others come with the oldest first. */
  state?: ListedState;
  /** 1 to 500, default 100. */
  pageSize?: number;
  /** `nextPageToken` of the page before, with the same state. */
  pageToken?: string;
}>;

export type Orders = Readonly<{
  /** One stream; undefined where no message of that key has come. A read, one more, and one for each 1,000 held. */
  inspect(key: string): Promise<StreamDetails | undefined>;
  list(options?: StreamListOptions): Promise<StreamPage>;
  /** Lets a stream that stands still try its number again, before anything behind it. False where none stands still. */
  resume(key: string): Promise<boolean>;
  /**
   * Gives up what the stream waits for, up to and with `number`; the numbers are late from then on. Where it stands
   * still, `number` is the one it stands at, and goes to the dead letters. True where it is given up, also
   * by an earlier call; false where it is done.
   * Rejects with PermanentError `STREAM_UNKNOWN`, `NUMBER_HELD` (it waits its turn and will run), `NO_DEAD_LETTERS`,
   * `SEQUENCE_TOO_FAR_AHEAD`, `NO_PAYLOAD_ROOM`; TransientError `STREAM_BUSY` while somebody works on it, `DEAD_LETTER_UNPUBLISHED`.
   */
  skip(key: string, number: number): Promise<boolean>;
}>;

const LARGEST_PAGE = 500;
/** As the default of `inOrder`: a slip of the finger must not end a stream. */
const FARTHEST = 100_000;
/** How long the publish of a dead letter may take. */
const PUBLISH_MS = 30_000;

export function orders(store: OrderStore, options: OrdersOptions): Orders {
  const { consumer, deadLetters, payloads, clock = systemClock(), log = silent } = options;
  const base = freshKey(options.start ?? 1);
  const refOf = (key: string): KeyRef => ({ consumer, key });

  const skipOnce = (ref: KeyRef, from: number, number: number, buried?: HeldMessage): Promise<Skipped> =>
    store.transact(ref, base, { from, limit: 1 }, skipping(number, buried));

  return {
    async inspect(key) {
      const ref = refOf(key);
      const { state, nowMs } = await store.read(ref);
      if (state === undefined) return undefined;
      const [[first], held] = await Promise.all([store.held(ref, state.last + 1, 1), store.countHeld(ref)]);
      return streamDetails(streamView(key, state, nowMs), state, held, first);
    },

    async list({ state = 'any', pageSize = 100, pageToken } = {}) {
      if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > LARGEST_PAGE) {
        throw new PermanentError(
          'INVALID_PAGE_SIZE',
          `pageSize is ${pageSize}; accepted: 1 to ${LARGEST_PAGE}`,
        );
      }
      const after = pageToken === undefined ? {} : { after: pageToken };
      const { keys, next } = await store.list(consumer, { state, limit: pageSize, ...after });
      return {
        streams: keys.flatMap((key) =>
          'state' in key ? [streamView(key.ref.key, key.state, key.nowMs)] : [],
        ),
        unreadable: keys.flatMap((key) => ('state' in key ? [] : [{ key: key.ref.key, error: key.error }])),
        ...(next !== undefined && { nextPageToken: next }),
      };
    },

    async resume(key) {
      const ref = refOf(key);
      const known = (await store.read(ref)).state !== undefined;
      const resumed = await store.transact(ref, base, { from: 0, limit: 1 }, resuming(known));
      if (resumed === 'unknown') throw unknown(ref);
      return resumed === 'resumed';
    },

    async skip(key, number) {
      const ref = refOf(key);
      const { state } = await store.read(ref);
      if (state === undefined) throw unknown(ref);
      if (!Number.isSafeInteger(number) || number < 1 || number > state.last + FARTHEST) {
        const accepted = `a whole number, at most ${FARTHEST} beyond the last one done, ${state.last}`;
        throw new PermanentError('SEQUENCE_TOO_FAR_AHEAD', `the number is ${number}; accepted: ${accepted}`);
      }
      let answer = await skipOnce(ref, state.last + 1, number);
      if (answer.kind === 'poison') {
        if (deadLetters === undefined) {
          throw new PermanentError(
            'NO_DEAD_LETTERS',
            `number ${number} is stored: give a dead-letter topic, so that it is not lost`,
          );
        }
        const { held } = answer;
        await bury(ref, answer, deadLetters, payloads, clock, log);
        answer = await skipOnce(ref, state.last + 1, number, held);
        if (answer.kind === 'skipped') await discard(payloads, { log }, [held]);
      }
      switch (answer.kind) {
        case 'skipped':
          return true;
        case 'passed':
          return false;
        case 'busy':
          throw new TransientError(
            'STREAM_BUSY',
            'somebody works on the stream, or died in it; try again soon',
          );
        case 'held':
          throw new PermanentError(
            'NUMBER_HELD',
            `number ${answer.number} is here and will run in its turn; accepted: a missing number before it, or the one at which the stream stands still`,
          );
        case 'poison':
          throw new TransientError('STREAM_BUSY', 'the stream changed meanwhile; try again');
      }
    },
  };
}

async function bury(
  ref: KeyRef,
  { held, halted }: Extract<Skipped, { kind: 'poison' }>,
  deadLetters: Middleware,
  payloads: PayloadRoom | undefined,
  clock: Clock,
  log: Log,
): Promise<void> {
  const controller = new AbortController();
  const cancel = clock.after(PUBLISH_MS, () => controller.abort());
  const context: Context = {
    consumer: ref.consumer,
    source: held.source,
    now: () => clock.now(),
    deadline: clock.monotonic() + PUBLISH_MS,
    signal: controller.signal,
    log,
  };
  const error = new PermanentError(halted.code, halted.text);
  try {
    const outcome = await compose(async () => deadLetter(error), [deadLetters])(
      await readable(payloads, ref, held),
      context,
    );
    if (outcome.kind === 'deadLetter' && outcome.published === true) return;
    throw new TransientError(
      'DEAD_LETTER_UNPUBLISHED',
      `the dead letter of number ${held.number} was not published`,
      {
        cause: outcome.kind === 'ack' ? undefined : outcome.error,
      },
    );
  } finally {
    cancel();
  }
}

const unknown = (ref: KeyRef): PermanentError =>
  new PermanentError(
    'STREAM_UNKNOWN',
    `no message of sequenceKey ${JSON.stringify(ref.key)} has come to ${ref.consumer}`,
  );
