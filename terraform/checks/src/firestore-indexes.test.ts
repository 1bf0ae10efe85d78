/**
 * The planned indexes and TTL policies against what the library does: the contracts of its stores run on the local
 * stack's Firestore, under the names of a deployment, with the planned indexes and no other. A query that lacks one is
 * refused there as the service would refuse it. Every place in the library that makes a query must have been there, and
 * every planned index must have been asked for: each is paid for with every write.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { at, text } from './facts/values.ts';
import type { JsonObject } from './module.ts';
import { readPlan } from './plans.ts';

type Made = (...given: unknown[]) => unknown;
type Write = Readonly<{ update?: { name: string; fields?: Record<string, { timestampValue?: unknown }> } }>;
type Call = (method: string, body: { writes?: readonly Write[] }, ...rest: unknown[]) => unknown;
type Query = { _queryOptions: { collectionId: string } } & Record<'where' | 'orderBy', Made>;
type NumberSnapshot = { get(field: string): unknown };
type NumberRef = { get(): Promise<NumberSnapshot>; set(value: object): Promise<unknown> };
type Numbers = { doc(name: string): NumberRef };
type NumberTransaction = {
  get(ref: NumberRef): Promise<NumberSnapshot>;
  set(ref: NumberRef, value: object): void;
};
type Client = {
  request: Call;
  collection(name: string): object;
  runTransaction(work: unknown, options: object): Promise<unknown>;
  terminate(): Promise<void>;
};

/** By its place: the workspaces of what is deployed are no dependencies of the checks. */
async function imported<Name extends string>(path: string, ...names: Name[]): Promise<Record<Name, Made>> {
  const module = (await import(new URL(`../../../${path}`, import.meta.url).href)) as Record<Name, Made>;
  for (const name of names) assert.equal(typeof module[name], 'function', `${path} has no ${name}`);
  return module;
}

const { startFirestore } = await imported('emulator/src/index.ts', 'startFirestore');
const { clientOf } = await imported('proofs/src/servers/firestore-servers.ts', 'clientOf');
const { systemClock } = await imported('shared/src/clock.ts', 'systemClock');
const { request: claimRequest } = await imported('shared/src/dedup/contract.ts', 'request');
const dedup = await imported('shared/src/dedup/firestore.ts', 'firestoreClaims');
const { ledgerContract } = await imported('shared/src/schedules/contract.ts', 'ledgerContract');
const { firestoreLedger } = await imported('shared/src/schedules/firestore.ts', 'firestoreLedger');
const { streamStoreContract } = await imported('shared/src/order/contract.ts', 'streamStoreContract');
const { firestoreStreams } = await imported('shared/src/order/firestore.ts', 'firestoreStreams');
const { outboxContract } = await imported('shared/src/outbox/contract.ts', 'outboxContract');
const { firestoreOutbox } = await imported('shared/src/outbox/firestore.ts', 'firestoreOutbox');
const { firestorePayloads } = await imported('shared/src/payload/firestore.ts', 'firestorePayloads');
const { firestoreInbox } = await imported('shared/src/dedup/firestore-inbox.ts', 'firestoreInbox');
const { sagaStoreContract } = await imported('shared/src/sagas/contract.ts', 'sagaStoreContract');
const { choreographyContract } = await imported(
  'shared/src/sagas/choreography-contract.ts',
  'choreographyContract',
);
const sagas = await imported(
  'shared/src/sagas/firestore.ts',
  'firestoreSagas',
  'firestoreStepRecords',
  'firestoreTraces',
  'firestoreLocks',
);

const planned: readonly JsonObject[] = (await readPlan('complete')).resources
  .filter(({ type }) => type === 'google_firestore_field')
  .map(({ values }) => values);
const indexOf = (values: JsonObject) => at(values, 'index_config', 'indexes');
const nameOf = (values: JsonObject): string => `${text(values['collection'])}.${text(values['field'])}`;

/** As a firestore.indexes.json. */
const definitionsOf = (fields: readonly JsonObject[]): object => ({
  fieldOverrides: fields.map((values) => ({
    collectionGroup: text(values['collection']),
    fieldPath: text(values['field']),
    ttl: 'ttl_config' in values,
    indexes: [indexOf(values)]
      .filter((index) => index !== undefined)
      .map((index) => ({ order: text(at(index, 'order')), queryScope: text(at(index, 'query_scope')) })),
  })),
});

async function opened(fields: readonly JsonObject[]): Promise<{ client: Client; close(): Promise<void> }> {
  const indexes = { mode: 'enforce', definitions: definitionsOf(fields) };
  const server = (await startFirestore({ clock: systemClock(), indexes, log: () => {} })) as {
    address: string;
    close(): Promise<void>;
  };
  const client = clientOf(server.address) as Client;
  return {
    client,
    async close() {
      await client.terminate();
      await server.close();
    },
  };
}

const main = await opened(planned);
const { client } = main;
after(async () => main.close());

/** Collections whose documents were written with an expiry. */
const expiring = new Set<string>();
const { request } = client;
client.request = (method, body, ...rest) => {
  for (const { update } of method === 'commit' ? (body.writes ?? []) : []) {
    if (update?.fields?.['expiresAt']?.timestampValue === undefined) continue;
    expiring.add(update.name.split('/').at(-2) ?? '');
  }
  return request.call(client, method, body, ...rest);
};

/** `file:line` of each `where` and `orderBy` that was called, and the fields that were named. */
const places = new Set<string>();
const asked = new Set<string>();
const query = Object.getPrototypeOf(Object.getPrototypeOf(client.collection('any'))) as Query;
for (const name of ['where', 'orderBy'] as const) {
  const own = query[name];
  query[name] = function recorded(this: Query, ...given) {
    asked.add(`${this._queryOptions.collectionId}.${nameAsked(given[0])}`);
    const stack = new Error(name).stack ?? '';
    for (const [, place = ''] of stack.matchAll(/shared\/src\/([\w/.-]+:\d+)/g)) places.add(place);
    return own.apply(this, given);
  };
}

/** Of a map with a field for each shard the map: its fields inherit its index. */
function nameAsked(field: unknown): string {
  const path = field as { formattedName?: string };
  const name = path.formattedName ?? String(field);
  return name.replace(/^(pendingAt)\..*$/, '$1');
}

const valueOf = (snapshot: NumberSnapshot): number => Number(snapshot.get('value') ?? 0);
const suffixed = (suffix: string): string => `pubsub-guarantees-${suffix}`;
const outboxNames = { rows: suffixed('outbox-rows'), streams: suffixed('outbox-streams') };
const under = (store: object) => async (): Promise<object> => ({
  ...store,
  transact: async (work: unknown) => client.runTransaction(work, { maxAttempts: 20 }),
  close: async () => {},
});
const ledger = firestoreLedger(client, { collection: suffixed('schedules') });
ledgerContract('the planned indexes', under({ ledger }));
const streams = firestoreStreams(client, { collection: suffixed('order') });
streamStoreContract('the planned indexes', under({ store: streams }));
const outbox = firestoreOutbox(client, outboxNames);
outboxContract('the planned indexes', under({ store: outbox }));
const inbox = firestoreInbox(client, { collection: suffixed('claims'), outbox });
const instances = sagas.firestoreSagas(client, { collection: suffixed('sagas') });
sagaStoreContract('the planned indexes', under({ store: instances, inbox }));

/** A participant's own documents, which no module makes. */
const numbers = client.collection('numbers') as Numbers;
const numberAt = (name: string): NumberRef => numbers.doc(name.replaceAll('/', '~'));
choreographyContract(
  'the planned indexes',
  under({
    inbox,
    records: sagas.firestoreStepRecords(client, { collection: suffixed('saga-steps') }),
    traces: sagas.firestoreTraces(client, { collection: suffixed('saga-traces') }),
    clock: systemClock(),
    now: () => Date.now(),
    until: async (done: unknown) => done,
    get: async (transaction: NumberTransaction, name: string) =>
      valueOf(await transaction.get(numberAt(name))),
    set: (transaction: NumberTransaction, name: string, value: number) =>
      transaction.set(numberAt(name), { value }),
    read: async (name: string) => valueOf(await numberAt(name).get()),
  }),
);

test('claims and payloads find what they look for', async () => {
  type Store = Record<string, (...given: unknown[]) => Promise<unknown>>;
  const claims = dedup.firestoreClaims(client, { collection: suffixed('claims') }) as Store;
  await claims['claim']?.(claimRequest());
  const collection = suffixed('payload');
  const payloads = firestorePayloads(client, { collection, clock: systemClock() }) as Store;
  await payloads['put']?.('owner', Buffer.alloc(1_000_000), Date.now());
  await payloads['sweep']?.({ signal: new AbortController().signal });
});

test('locks are found in a collection of the caller’s own, by the index that Firestore makes of each field', async () => {
  const accounts = client.collection('accounts') as Numbers;
  await accounts.doc('a').set({ lockedBy: 'order/17' });
  const locks = sagas.firestoreLocks(accounts) as { heldBy(saga: string, id: string): Promise<object[]> };
  assert.equal((await locks.heldBy('order', '17')).length, 1);
});

test('every place in the library that makes a query was there', async () => {
  const library = fileURLToPath(new URL('../../../shared/src/', import.meta.url));
  const files = (await readdir(library, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && !/\.test\.ts$|testing\/|contract\.ts$/.test(file),
  );
  const made: string[] = [];
  for (const file of files) {
    for (const [index, line] of (await readFile(`${library}${file}`, 'utf8')).split('\n').entries())
      if (/\.(where|orderBy)\(/.test(line)) made.push(`${file}:${index + 1}`);
  }
  assert.ok(made.length > 10, 'the library is not where it is looked for');
  assert.deepEqual(
    made.filter((place) => !places.has(place)),
    [],
  );
});

test('no index is planned that no query asks for', () => {
  const indexed = planned.filter((values) => indexOf(values) !== undefined).map(nameOf);
  assert.deepEqual(
    indexed.filter((name) => !asked.has(name)),
    [],
  );
});

test('what is written with an expiry has a TTL policy, and nothing else has', () => {
  const policies = planned.filter((values) => 'ttl_config' in values).map(nameOf);
  assert.deepEqual(policies.toSorted(), [...expiring].map((name) => `${name}.expiresAt`).toSorted());
});

test('every collection of the library that was queried has its other fields without an index', () => {
  const queried = new Set([...asked].map((name) => name.slice(0, name.indexOf('.'))));
  const collections = [...queried].filter((name) => name.startsWith(suffixed('')));
  // What is not the library's is named here, so that a store under another name is not passed over.
  assert.deepEqual(
    [...queried].filter((name) => !collections.includes(name)),
    ['accounts'],
  );
  const named = planned.filter(({ field }) => field === '*').map(({ collection }) => collection);
  assert.deepEqual(
    collections.filter((name) => !named.includes(name)),
    [],
  );
});

const ROWS = outboxNames.rows;
const LOST: Readonly<Record<string, readonly [field: string, change: JsonObject, find: string]>> = {
  'is gone': [`${ROWS}.place`, { index_config: [{}] }, 'after'],
  'runs the other way': [
    `${ROWS}.failedAt`,
    { index_config: [{ indexes: [{ order: 'ASCENDING', query_scope: 'COLLECTION' }] }] },
    'listFailures',
  ],
};
for (const [title, [field, change, find]] of Object.entries(LOST)) {
  test(`a planned index that ${title} is missed`, async () => {
    const other = await opened(
      planned.map((values) => (nameOf(values) === field ? { ...values, ...change } : values)),
    );
    try {
      const store = firestoreOutbox(other.client, outboxNames) as Record<string, Made>;
      const given = find === 'after' ? [{ key: 'key', epoch: 'epoch' }, 1, 10] : [10];
      await assert.rejects(async () => store[find]?.(...given), /requires an index/);
    } finally {
      await other.close();
    }
  });
}
