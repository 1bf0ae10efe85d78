/**
 * A process that pulls a subscription in order, sweeps, and writes what its handler does to a file, line by line,
 * so that it is known when it is killed. Started by pubsub-workers.ts; it ends with its parent.
 */
import { appendFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { systemClock } from '../../../shared/src/clock.ts';
import { compose, type Handler } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';
import { firestoreStreams } from '../../../shared/src/order/firestore.ts';
import { orderedDelivery } from '../../../shared/src/order/in-order.ts';
import type { StreamAdmin, StreamChange, StreamStore } from '../../../shared/src/order/stream-store.ts';
import { CONSUMER, type ConsumingLine, type ConsumingTask } from './consuming-task.ts';

const SWEEP_EVERY_MS = 500;
const LONG_RUNS = 0.25;
const LONG_RUN_MS = 500;
/** The time of a run in a process that is to be killed: most of the lease. */
const LAST_RUN_MS = 1_500;

const task = JSON.parse(process.argv[2] ?? '') as ConsumingTask;
process.once('disconnect', () => process.exit());
let isLast = false;
process.once('message', () => (isLast = true));
const note = (line: ConsumingLine): void => appendFileSync(task.file, `${JSON.stringify(line)}\n`);

const clock = systemClock();
const [host = '', port] = task.firestore.split(':');
const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
const store = notingTakeovers(firestoreStreams(firestore));
const client = new PubSub({ projectId: 'demo-project', apiEndpoint: task.pubsub });
// A number that is killed again and again is not poison here: it is the processes that are killed.
const streams = orderedDelivery(store, { clock, lease: '2s', retry: { maxAttempts: 1_000 } });

const handler: Handler = async ({ attributes, data }, { deadline, fencingToken = '', signal }) => {
  const run = {
    worker: task.name,
    key: attributes['sequenceKey'] ?? '',
    number: Number(attributes['sequence']),
    dedupId: attributes['dedupId'] ?? '',
    text: data.toString(),
    token: fencingToken,
    untilMs: Date.now() + deadline - clock.monotonic(),
  };
  note({ ...run, what: 'begun', atMs: Date.now() });
  if (isLast) process.send?.('begun');
  const isLong = Math.random() < LONG_RUNS;
  await pause(isLast ? LAST_RUN_MS : isLong ? LONG_RUN_MS : Math.random() * 20);
  signal.throwIfAborted();
  note({ ...run, what: 'effect', atMs: Date.now() });
  // A moment in which the effect is written and not yet recorded as done.
  await pause(Math.random() * 10);
  return ack();
};

/** A commit that records a death takes over the dead process's stream. */
function notingTakeovers(inner: StreamStore & StreamAdmin): StreamStore & StreamAdmin {
  const noteOf = ({ patch }: StreamChange): void => {
    if (patch.suspectsTo !== undefined) note({ what: 'takeover', worker: task.name });
  };
  return {
    ...inner,
    async commit(...args) {
      const version = await inner.commit(...args);
      if (version !== undefined) noteOf(args[2]);
      return version;
    },
    // Where several processes work at a stream, it is taken over in a transaction.
    async transact(ref, work) {
      let change: StreamChange | undefined;
      const done = await inner.transact(ref, (transaction) => {
        change = undefined;
        const commit: typeof transaction.commit = (state, last) => {
          change = last;
          transaction.commit(state, last);
        };
        return work({ ...transaction, commit });
      });
      if (done.applied && change !== undefined) noteOf(change);
      return done;
    },
  };
}

async function sweeping(): Promise<never> {
  const sweep = streams.sweep(compose(handler, []));
  for (;;) {
    await pause(SWEEP_EVERY_MS);
    const { signal } = new AbortController();
    const context = { consumer: CONSUMER, now: clock.now, deadline: clock.monotonic() + 5_000, signal };
    const swept = await sweep({ ...context, log: silent }).catch(() => undefined);
    if (swept !== undefined && swept.done > 0) note({ what: 'swept', worker: task.name });
  }
}

// Writes the compile cache for later processes: a killed process would not write it.
flushCompileCache();
receive(client.subscription(task.subscription), compose(handler, [streams.middleware]), {
  consumer: CONSUMER,
  concurrency: 20,
  handlerTimeout: '20s',
  log: silent,
});
process.send?.('ready');
void sweeping();
