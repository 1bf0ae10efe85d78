/**
 * Sagas for programs and operators: look at instances, and cancel, retry or settle one. What is asked for is a message to
 * the orchestrator, which alone has the definitions; its answer is in the instance under the call's own ID.
 *
 * A call may be repeated under its ID, whatever became of it: it is applied once, and has the same answer each time.
 */
import { randomUUID } from 'node:crypto';
import { type Growth, pauseAfter } from '../async/backoff.ts';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { TransientError } from '../errors.ts';
import {
  checkOptions,
  clock as aClock,
  duration,
  flag,
  oneOf,
  port,
  publisher as aPublisher,
  required,
  text,
  whole,
  durationFrom,
} from '../options.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { OperatorAction } from './attributes.ts';
import { type Instance, isEnded, type SagaState } from './instance.ts';
import { jsonOf } from './json.ts';
import { operatorMessage } from './messages.ts';
import type { OperatorAnswer, SettledOutcome } from './operations.ts';
import type { SagaStore } from './saga-store.ts';
import { type SagaView, viewOf } from './view.ts';

export type SagasOptions = Readonly<{
  /** The orchestrator's consumer: its instances are scoped by it. */
  consumer: string;
  /** The orchestrator's topic. */
  topic: string;
  /** Publishes what is asked of the orchestrator. */
  publisher: Publisher;
  /** Default: the machine's. */
  clock?: Clock;
  /** How long a call waits for its answer (default `30s`, at least `1ms`). */
  answerTimeout?: Duration;
}>;

export type SagaListOptions = Readonly<{
  /** Only instances of this saga (default: of all). */
  saga?: string;
  /** Only instances in this state (default: in any). */
  state?: SagaState;
  /** Only instances that wait for an operator, or only others (default: both). */
  parked?: boolean;
  /** Only instances of this version (default: of any; at least 1): empty before a version may be removed. */
  version?: number;
  /** Only instances that were started longer ago (default: all; at least `0ms`). */
  olderThan?: Duration;
  /** 1 to 500, default 100. A page may hold fewer and still not be the last. */
  pageSize?: number;
  /** `nextPageToken` of the page before, with the same options (default: the first page). */
  pageToken?: string;
}>;

export type SagaList = Readonly<{
  sagas: readonly SagaView[];
  /** Absent on the last page. */
  nextPageToken?: string;
}>;

export type CallOptions = Readonly<{
  /** Your own name for this call, for a repeat of it. Default: a random one. */
  call?: string;
}>;

export type SettleOptions = CallOptions &
  Readonly<{
    /** What the step is taken to have come to. */
    outcome: SettledOutcome;
    /** For the history. */
    reason: string;
    /** Of a step that is done: what `replied` of the saga gets (default: nothing). */
    reply?: unknown;
  }>;

export type CallAnswer = Readonly<{
  call: string;
  answer:
    | OperatorAnswer
    /** A function of the definition threw: the instance is parked with its text. */
    | 'failed'
    /** The instance had ended before. */
    | 'ended'
    /** There is no such instance. */
    | 'unknown';
}>;

export type Sagas = Readonly<{
  inspect(saga: string, id: string): Promise<SagaView | undefined>;
  /** Page by page; what waits for an operator is between the two open states. */
  list(options?: SagaListOptions): Promise<SagaList>;
  /**
   * Gives an instance up. `cancelling`: it will be compensated, for certain; `tooLate`: it will be completed, for certain;
   * `asked`: the pivot is in doubt, and decides. Rejects with `SAGA_NO_ANSWER` after `answerTimeout`: call again under `call`.
   */
  cancel(saga: string, id: string, options?: CallOptions): Promise<CallAnswer>;
  /** Sends every open command again, now. */
  retry(saga: string, id: string, options?: CallOptions): Promise<CallAnswer>;
  /** Writes the outcome of an open step of a parked instance, which no participant will tell any more. */
  settle(saga: string, id: string, step: string, options: SettleOptions): Promise<CallAnswer>;
}>;

const PAGE = 100;
const LARGEST_PAGE = 500;
const PAUSES: Growth = { minMs: 100, maxMs: 2_000 };
const STATES = [
  'running',
  'compensating',
  'completed',
  'compensated',
] as const satisfies readonly SagaState[];

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const orders = sagas(firestoreSagas(firestore), { consumer: 'order-sagas', topic: 'saga', publisher });
 * for (const { id, problems } of (await orders.list({ parked: true })).sagas) console.log(id, problems);
 * await orders.settle('place-order', 'order-17', 'ship', { outcome: 'done', reason: 'shipped by hand' });
 */
export function sagas(store: Pick<SagaStore<never>, 'read' | 'list'>, options: SagasOptions): Sagas {
  port(['read', 'list'], 'a store of sagas, for example firestoreSagas(firestore)')('store', store);
  checkOptions<SagasOptions>(options, {
    consumer: required(text),
    topic: required(text),
    publisher: required(aPublisher),
    clock: aClock,
    answerTimeout: durationFrom('1ms'),
  });
  const { consumer, topic, publisher, clock = systemClock(), answerTimeout = '30s' } = options;
  const timeoutMs = toMilliseconds(answerTimeout, 'answerTimeout');
  const refOf = (saga: string, id: string) => ({ consumer, saga, id });

  const answerIn = (instance: Instance | undefined, action: OperatorAction, call: string) => {
    if (instance === undefined) return 'unknown';
    const own = instance.history.find(({ id, answer }) => id === call && answer !== undefined)?.answer;
    if (own !== undefined) return own as CallAnswer['answer'];
    if (!isEnded(instance)) return undefined;
    if (action !== 'cancel') return 'ended';
    return instance.state === 'completed' ? 'tooLate' : 'cancelling';
  };

  const asked = async (
    saga: string,
    id: string,
    action: OperatorAction,
    body: string,
    given: CallOptions,
  ): Promise<CallAnswer> => {
    const { call = randomUUID() } = given;
    const ref = refOf(saga, id);
    const look = async () => answerIn((await store.read(ref)).instance, action, call);
    const before = await look();
    if (before !== undefined) return { call, answer: before };
    await publisher.publish(operatorMessage(ref, action, body, topic, call));
    const until = clock.monotonic() + timeoutMs;
    for (let looks = 1; ; looks += 1) {
      const answer = await look();
      if (answer !== undefined) return { call, answer };
      if (clock.monotonic() >= until) {
        const text = `no answer to ${action} within ${timeoutMs} ms; ask again with call ${call}`;
        throw new TransientError('SAGA_NO_ANSWER', text);
      }
      await sleep(clock, pauseAfter(looks, PAUSES));
    }
  };

  return {
    async inspect(saga, id) {
      text('saga', saga);
      text('id', id);
      const { instance } = await store.read(refOf(saga, id));
      return instance && viewOf(instance);
    },
    async list(given = {}) {
      checkOptions<SagaListOptions>(given, {
        saga: text,
        state: oneOf(...STATES),
        parked: flag,
        version: whole(1),
        olderThan: duration,
        pageSize: whole(1, LARGEST_PAGE),
        pageToken: text,
      });
      const { olderThan, pageSize = PAGE, pageToken, ...filters } = given;
      const { items, next } = await store.list({
        consumer,
        ...filters,
        limit: pageSize,
        ...(olderThan !== undefined && {
          startedBeforeMs: clock.now() - toMilliseconds(olderThan, 'olderThan'),
        }),
        ...(pageToken !== undefined && { after: pageToken }),
      });
      return { sagas: items.map(viewOf), ...(next !== undefined && { nextPageToken: next }) };
    },
    async cancel(saga, id, given = {}) {
      checkCall(saga, id, given);
      return asked(saga, id, 'cancel', '', given);
    },
    async retry(saga, id, given = {}) {
      checkCall(saga, id, given);
      return asked(saga, id, 'retry', '', given);
    },
    async settle(saga, id, step, given) {
      text('saga', saga);
      text('id', id);
      text('step', step);
      checkOptions<SettleOptions>(given, {
        call: text,
        outcome: required(oneOf('done', 'refused', 'undone')),
        reason: required(text),
        reply: () => undefined,
      });
      const { outcome, reason, reply } = given;
      const said = reply === undefined ? {} : { reply: jsonOf('reply', reply) };
      return asked(saga, id, 'settle', jsonOf('settle', { step, outcome, reason, ...said }), given);
    },
  };
}

function checkCall(saga: string, id: string, given: CallOptions): void {
  text('saga', saga);
  text('id', id);
  checkOptions<CallOptions>(given, { call: text });
}
