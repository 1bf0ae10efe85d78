import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore, Timestamp, type Transaction } from '@google-cloud/firestore';
import { createFaults, startFirestore, until } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { codeOf } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import { memoryPublisher } from '../../../shared/src/testing/index.ts';
import { claimStoreContract } from '../../../shared/src/dedup/contract.ts';
import { transactionFailure } from '../../../shared/src/firestore/errors.ts';
import { type FirestoreInboxOptions, firestoreInbox } from '../../../shared/src/dedup/firestore.ts';
import { inbox, type InboxOptions } from '../../../shared/src/dedup/inbox.ts';
import { inboxContract } from '../../../shared/src/dedup/inbox-contract.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import { silent } from '../../../shared/src/log.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';
import { awake } from '../servers/awake.ts';
import { watchSelected } from '../servers/firestore-client.ts';

type Server = Readonly<{ address: string; close(): Promise<void> }>;

// The client looks for Google's metadata server even when it talks to an emulator, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';

const connect = (server: Server): Firestore => {
  const [host = '', port] = server.address.split(':');
  return new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
};
const balance = (fields: { get(name: string): unknown }): number => Number(fields.get('balance') ?? 0);

function suite(name: string, start: () => Promise<Server>): void {
  const open = async () => {
    const server = await start();
    const firestore = connect(server);
    const close = async (): Promise<void> => {
      await firestore.terminate();
      await server.close();
    };
    // Collections of their own: another emulator keeps what earlier runs left behind.
    const run = `${process.pid}-${Date.now()}`;
    const patient = { callTimeout: '60s' } as const;
    const outbox = firestoreOutbox(firestore, { rows: `rows-${run}`, streams: `streams-${run}`, ...patient });
    const store = firestoreInbox(firestore, { collection: `claims-${run}`, outbox, ...patient });
    return { firestore, store, close };
  };
  claimStoreContract(`the inbox in ${name}`, async () => ({ ...(await open()), pass: (ms) => pause(ms) }));
  inboxContract<Transaction>(name, async () => {
    const { firestore, store, close } = await open();
    const at = (id: string) => firestore.collection('accounts').doc(id);
    return {
      store,
      clock: systemClock(),
      get: async (transaction, id) => balance(await transaction.get(at(id))),
      set: (transaction, id, value) => void transaction.set(at(id), { balance: value }),
      read: async (id) => balance(await at(id).get()),
      pass: (ms) => pause(ms),
      until: (done) => done,
      close,
    };
  });
}

suite('the local stack’s Firestore', () => startFirestore({ clock: systemClock() }));

const official = process.env['TEST_FIRESTORE_EMULATOR_HOST'];
if (official === undefined) {
  test('the inbox in another Firestore', { skip: 'TEST_FIRESTORE_EMULATOR_HOST is not set' }, () => {});
} else {
  suite(`Firestore at ${official}`, async () => {
    const server = { address: official, close: async () => {} };
    // A Java that has just started needs longer for its first commit than an operation may take.
    const firestore = connect(server);
    await firestore.doc('accounts/warm').set({});
    await firestore.terminate();
    return server;
  });
}

/** Adds ten to one account, in a Firestore that fails as the rules say. */
async function bank(
  t: TestContext,
  options: {
    rules?: readonly object[];
    store?: FirestoreInboxOptions;
    inbox?: InboxOptions;
    handler?: InboxHandler<Transaction>;
  } = {},
) {
  const faults = createFaults();
  const time = awake(systemClock());
  const server = await startFirestore({ clock: time, faults });
  const firestore = connect(server);
  t.after(async () => {
    await firestore.terminate();
    await server.close();
    time.close();
  });
  const account = firestore.doc('accounts/one');
  const calls: Record<string, number> = {};
  type Send = (method: string, ...rest: unknown[]) => unknown;
  const internals = firestore as unknown as { request: Send; requestStream: Send };
  for (const name of ['request', 'requestStream'] as const) {
    const send = internals[name];
    internals[name] = (method, ...rest) => {
      calls[method] = (calls[method] ?? 0) + 1;
      return send.call(firestore, method, ...rest);
    };
  }
  let runs = 0;
  const deposit: InboxHandler<Transaction> = async (message, context) => {
    runs += 1;
    const { transaction } = context;
    transaction.set(account, { balance: balance(await transaction.get(account)) + 10 });
    return options.handler === undefined ? ack() : options.handler(message, context);
  };
  const clock = systemClock();
  /** A call is waited for: on a busy machine an answer is late although the store is there. */
  const storeWith = (own: FirestoreInboxOptions = {}) =>
    firestoreInbox(firestore, { callTimeout: '60s', ...own });
  const deliverWith = (inboxStore: ReturnType<typeof storeWith>): ((id?: string) => Promise<Outcome>) => {
    const handle = compose(inbox(inboxStore, options.inbox)(deposit), []);
    return (id = 'm') => handle(aMessage(id), aContext(clock));
  };
  const store = storeWith(options.store);
  const deliver = deliverWith(store);
  const deliverPatiently = deliverWith(storeWith());
  faults.set({ rules: (options.rules ?? []).map((rule) => ({ service: 'firestore', ...rule })) });
  const read = async (): Promise<number> => balance(await account.get());
  return { firestore, faults, store, calls, deliver, deliverPatiently, read, runs: () => runs };
}

/** Rules about the commit of the handler alone: its first write names it. */
const commit = { method: 'Commit', resource: '*/accounts/*' };
const said = (outcome: Outcome): string => (outcome.kind === 'ack' ? outcome.reason : codeOf(outcome.error));

test('cost: beside the handler’s read a fresh message is two commits, a duplicate one and a read', async (t) => {
  const { deliver, calls } = await bank(t);
  assert.equal(said(await deliver()), 'handled');
  assert.deepEqual(calls, { batchGetDocuments: 1, commit: 2 });
  assert.equal(said(await deliver()), 'duplicate');
  assert.deepEqual(calls, { batchGetDocuments: 2, commit: 3 });
});

test('cost with messages: one commit more, which removes them; a duplicate also looks for what is left', async (t) => {
  const publisher = memoryPublisher();
  const message = { topic: 'out', data: Buffer.from('x'), attributes: {} };
  const { deliver, calls } = await bank(t, {
    inbox: { publisher },
    handler: async () => ack('handled', [message, message]),
  });
  assert.equal(said(await deliver()), 'handled');
  assert.deepEqual([calls, publisher.published.length], [{ batchGetDocuments: 1, commit: 3 }, 2]);
  assert.equal(said(await deliver()), 'duplicate');
  assert.deepEqual(calls, { batchGetDocuments: 2, commit: 4, runQuery: 1 });
});

test('the look for messages that are left asks for the state and the lease of a row, and not for its message', async (t) => {
  const { deliver, firestore } = await bank(t, {
    inbox: { publisher: { publish: () => Promise.reject(new Error('down')) } },
    handler: async () => ack('handled', [{ topic: 'out', data: Buffer.from('x'), attributes: {} }]),
  });
  assert.equal(said(await deliver()), 'OUTBOX_UNPUBLISHED');
  const asked = watchSelected(firestore);
  await deliver();
  const [first, ...rest] = asked();
  assert.deepEqual(first, ['leaseMs', 'leasedAt', 'nextTryAt', 'owner', 'state']);
  for (const fields of rest) assert.deepEqual(fields, first);
});

for (const [what, action] of [
  ['whose reply is lost', { type: 'lose-reply' }],
  ['that is said to be aborted, and is not', { type: 'lose-reply', code: 'ABORTED' }],
  ['after which the connection breaks', { type: 'cut', when: 'after' }],
] as const) {
  test(`a commit ${what} is found: acked, its effect happened once, its messages leave`, async (t) => {
    const publisher = memoryPublisher();
    const { deliver, read, runs, faults } = await bank(t, {
      rules: [{ ...commit, nth: 1, action }],
      inbox: { publisher },
      handler: async () => ack('handled', [{ topic: 'out', data: Buffer.from('x'), attributes: {} }]),
    });
    assert.equal(said(await deliver()), 'handled');
    assert.deepEqual([await read(), runs(), publisher.published.length, faults.fired()], [10, 1, 1, [1]]);
    assert.equal(said(await deliver()), 'duplicate');
    assert.deepEqual([await read(), runs()], [10, 1]);
  });
}

for (const action of [
  { type: 'cut', when: 'before' },
  { type: 'fail', code: 'ABORTED' },
] as const) {
  test(`a commit that never arrives (${action.type}) is made again by another run, and counts once`, async (t) => {
    const { deliver, read, faults } = await bank(t, { rules: [{ ...commit, nth: 1, action }] });
    assert.equal(said(await deliver()), 'handled');
    assert.deepEqual([await read(), faults.fired()], [10, [1]]);
  });
}

test('a store that answers no commit leaves nothing, and the claim is free for the next delivery', async (t) => {
  const { deliver, read, faults } = await bank(t, {
    rules: [{ ...commit, action: { type: 'fail', code: 'ABORTED' } }],
    store: { maxAttempts: 2 },
  });
  assert.equal(said(await deliver()), 'TRANSACTION_CONTENTION');
  assert.equal(await read(), 0);
  faults.set({ rules: [] });
  assert.equal(said(await deliver()), 'handled');
  assert.equal(await read(), 10);
});

test('B47: the heartbeat goes on beside the open transaction of a handler slower than its lease', async (t) => {
  const commits = (): number => calls['commit'] ?? 0;
  const { deliver, read, calls, runs } = await bank(t, {
    inbox: { lease: '1s' },
    // Two claims, and four renewals, one in each third of a lease.
    handler: async () => {
      await until(() => commits() >= 6, 'the renewals');
      return ack();
    },
  });
  const [first, second] = await Promise.all([deliver(), deliver()]);
  assert.deepEqual([said(first), said(second)].toSorted(), ['duplicate', 'handled']);
  assert.deepEqual([await read(), runs()], [10, 1]);
  assert.ok(commits() >= 7, 'and one completion');
});

test('B47: a handler that takes too long is cut off, whether it watches its signal or not, and nothing of it is committed', async (t) => {
  let isSlow = true;
  const { deliver, deliverPatiently, read } = await bank(t, {
    store: { attemptTimeout: '100ms' },
    handler: async () => {
      if (isSlow) await pause(400);
      return ack();
    },
  });
  assert.equal(said(await deliver()), 'TRANSACTION_TIMED_OUT');
  isSlow = false;
  assert.equal(said(await deliverPatiently()), 'handled');
  assert.equal(await read(), 10);
});

test('a write of the handler’s that Firestore refuses is a retry with the reason, and frees the claim', async (t) => {
  let isBad = true;
  const { deliver, read, firestore } = await bank(t, {
    handler: async (_message, { transaction }) => {
      if (isBad) transaction.update(firestore.doc('accounts/missing'), { balance: 1 });
      return ack();
    },
  });
  assert.equal(said(await deliver()), 'TRANSACTION_REFUSED');
  isBad = false;
  assert.equal(said(await deliver()), 'handled');
  assert.equal(await read(), 10);
});

test('B34: record and row as stored: timestamps are the server’s; the record expires, the row never does', async (t) => {
  const { deliver, firestore, store } = await bank(t, {
    inbox: { publisher: { publish: () => Promise.reject(new Error('down')) } },
    handler: async () =>
      ack('handled', [{ topic: 'out', data: Buffer.from([0, 255]), attributes: { a: 'b' } }]),
  });
  assert.equal(said(await deliver()), 'OUTBOX_UNPUBLISHED');
  const [record] = (await firestore.collection('pubsub-guarantees-claims').get()).docs;
  const [row] = (await firestore.collection('pubsub-guarantees-outbox-rows').get()).docs;
  assert.ok(record?.get('state') === 'done' && record.get('expiresAt') instanceof Timestamp);
  const { message, createdAt, leasedAt, nextTryAt, pendingAt, ...fields } = row?.data() ?? {};
  assert.deepEqual(fields, {
    v: 3,
    state: 'pending',
    topic: 'projects/demo-project/topics/out',
    group: row?.id.slice(0, row.id.lastIndexOf('.')),
    count: 1,
    attempts: 1,
    owner: null,
    leaseMs: 0,
  });
  assert.equal(row?.id.startsWith(`${record.id}.`), true);
  assert.ok(message instanceof Uint8Array && leasedAt instanceof Timestamp);
  assert.ok(createdAt instanceof Timestamp && nextTryAt instanceof Timestamp);
  assert.deepEqual(Object.values(pendingAt), [nextTryAt], 'it failed, and is due again');
  assert.equal(createdAt.valueOf(), record.get('doneAt').valueOf(), 'of one commit');
  const publisher = memoryPublisher();
  const { signal } = new AbortController();
  const relayed = relay(store.outbox, publisher, { log: silent });
  const swept = await until(async () => {
    const { done, failed } = await relayed.sweep({ signal });
    return done + failed > 0 && { done, failed };
  }, 'the row is due again');
  assert.deepEqual(swept, { done: 1, failed: 0 });
  const { data, attributes, topic } = publisher.published[0] ?? {};
  assert.deepEqual(
    [[...(data ?? [])], attributes?.['a'], topic],
    [[0, 255], 'b', 'projects/demo-project/topics/out'],
  );
});

test('a record that is not ours is left alone: a retry, for processing it could be a second effect', async (t) => {
  const { deliver, read, firestore, runs } = await bank(t);
  await deliver();
  const [record] = (await firestore.collection('pubsub-guarantees-claims').get()).docs;
  await record?.ref.update({ v: 2 });
  assert.equal(said(await deliver()), 'UNRECOGNISED_CLAIM');
  assert.deepEqual([await read(), runs()], [10, 1]);
});

test('options that cannot work are refused, and codes of a commit say what is known', async (t) => {
  const { firestore } = await bank(t);
  for (const bad of [{ attemptTimeout: '271s' }, { attemptTimeout: '0s' }, { maxAttempts: 0 }] as const) {
    assert.throws(() => firestoreInbox(firestore, bad), refusal(Object.keys(bad)[0] ?? ''));
  }
  const of = (code: number) => transactionFailure(Object.assign(new Error('text'), { code })).code;
  assert.deepEqual([3, 5, 6, 9, 11].map(of), Array<string>(5).fill('TRANSACTION_REFUSED'));
  assert.equal(of(10), 'TRANSACTION_CONTENTION');
  assert.deepEqual([1, 2, 4, 7, 8, 13, 14, 16].map(of), Array<string>(8).fill('STORE_UNAVAILABLE'));
});
