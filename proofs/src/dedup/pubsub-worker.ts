/**
 * A process that pulls, de-duplicates and writes its effects to a file, line by line, so that what it did is known when
 * it is killed. Started by pubsub-workers.ts; it ends with its parent, and drains on SIGTERM.
 */
import { appendFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose, type Handler, type Middleware } from '../../../shared/src/handler.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { receive } from '../../../shared/src/receive/pubsub.ts';
import type { ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';

export type WorkerTask = Readonly<{
  name: string;
  pubsub: string;
  subscription: string;
  store: Readonly<{ kind: 'redis'; port: number } | { kind: 'firestore'; address: string }>;
  file: string;
}>;

/**
 * `effect`: the work was done; `settled`: the delivery was acked after a run; `lost`: the run ended without an ack since
 * its lease was lost; `stolen`: it ended after another had taken the claim.
 */
export type WorkerLine = Readonly<{
  worker: string;
  run: number;
  text: string;
  what: 'begun' | 'effect' | 'settled' | 'lost' | 'failed' | 'stolen';
}>;

const LEASE = '2s';

function work(task: WorkerTask, store: ClaimStore): void {
  let runs = 0;
  const note = (run: number, text: string, what: WorkerLine['what']): void => {
    const line: WorkerLine = { worker: task.name, run, text, what };
    appendFileSync(task.file, `${JSON.stringify(line)}\n`);
  };
  /** By message ID: the run that dedup, around it, has begun. */
  const current = new Map<string, number>();
  const noted: Middleware = (next) => async (message, context) => {
    const text = message.data.toString();
    const log = {
      ...context.log,
      warn: (_line: string, fields?: Readonly<Record<string, unknown>>) => {
        const run = current.get(message.id);
        if (fields?.['event'] === 'dedup_stolen' && run !== undefined) note(run, text, 'stolen');
      },
    };
    const outcome = await next(message, { ...context, log });
    const run = current.get(message.id);
    if (run === undefined) return outcome;
    current.delete(message.id);
    if (outcome.kind === 'ack') note(run, text, 'settled');
    else note(run, text, codeOf(outcome.error) === 'LEASE_LOST' ? 'lost' : 'failed');
    return outcome;
  };
  const handler: Handler = async (message, { signal }) => {
    const text = message.data.toString();
    const run = (runs += 1);
    current.set(message.id, run);
    note(run, text, 'begun');
    if (run === 1) process.send?.('begun');
    await pause(50 + Math.random() * 250);
    signal.throwIfAborted();
    note(run, text, 'effect');
    // A moment in which the effect may be written and its completion not.
    await pause(Math.random() * 20);
    return ack();
  };
  const once = dedup(store, { lease: LEASE, waitBudget: '2s', minimumHandlerTime: '1s' });
  const client = new PubSub({ apiEndpoint: task.pubsub, projectId: 'demo-project' });
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  receive(client.subscription(task.subscription), compose(handler, [noted, once]), {
    consumer: 'worker',
    concurrency: 8,
    handlerTimeout: '8s',
    log: silent,
  });
}

/** Loads the client that is wanted and not the other: a process is started for every kill. */
async function storeOf({ store }: WorkerTask): Promise<ClaimStore> {
  if (store.kind === 'redis') {
    const [{ Redis }, { redisClaims }] = await Promise.all([
      import('ioredis'),
      import('../../../shared/src/dedup/redis.ts'),
    ]);
    const redis = new Redis(store.port, '127.0.0.1').on('error', () => {});
    return redisClaims(redis, { callTimeout: '1s' });
  }
  const [{ Firestore }, { firestoreClaims }] = await Promise.all([
    import('@google-cloud/firestore'),
    import('../../../shared/src/dedup/firestore.ts'),
  ]);
  const [host = '', port] = store.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  return firestoreClaims(firestore, { callTimeout: '1s' });
}

process.once('disconnect', () => process.exit());
const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const store = await storeOf(task);
// Writes the compile cache for later processes: a killed process would not write it.
flushCompileCache();
process.once('message', () => {
  work(task, store);
});
process.send?.('ready');
