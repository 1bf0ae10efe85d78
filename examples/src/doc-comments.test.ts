/** Every public function shows how it is called, and what the doc comments show is checked by the compiler. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const LIBRARY = new URL('../../shared/', import.meta.url);
/** Beside the sources, so that imports resolve as they do for a file in this folder; not kept in git. */
const FOLDER = new URL('../dist/doc-comments/', import.meta.url);
const COMPILER = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));

/** What examples take as given. */
const GIVEN = `
import { type CollectionReference, Firestore, type Transaction } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { Redis } from 'ioredis';
import { Client, Pool } from 'pg';
import * as z from 'zod';
import type { CloudTasksClient } from '@google-cloud/tasks';
import type * as library from 'pubsub-guarantees';
import type * as dedupTypes from 'pubsub-guarantees/dedup';
import type * as delayTypes from 'pubsub-guarantees/delay';
import type * as jobsTypes from 'pubsub-guarantees/jobs';
import type * as orderTypes from 'pubsub-guarantees/order';
import type * as outboxTypes from 'pubsub-guarantees/outbox';
import type * as payloadTypes from 'pubsub-guarantees/payload';
import type * as receiveTypes from 'pubsub-guarantees/receive';
import type * as sagasTypes from 'pubsub-guarantees/sagas';
import type * as schedulesTypes from 'pubsub-guarantees/schedules';
import type * as tasksTypes from 'pubsub-guarantees/tasks';
import type { CloudTasksOptions } from 'pubsub-guarantees/tasks/cloud-tasks';
type Sweep = library.Sweep;
type PostgresTransaction = Parameters<Parameters<typeof inTransaction>[1]>[0];
declare const firestore: Firestore;
declare const pubsub: PubSub;
declare const redis: Redis;
declare const client: CloudTasksClient;
declare const settings: CloudTasksOptions;
declare const clock: library.Clock;
declare const log: library.Log;
declare const publisher: library.Publisher;
declare const claims: dedupTypes.ClaimStore;
declare const queue: tasksTypes.TaskQueue;
declare const ledger: schedulesTypes.Ledger;
declare const payloads: payloadTypes.PayloadStore;
declare const store: orderTypes.StreamStore & orderTypes.StreamAdmin;
declare const options: delayTypes.DelayOptions;
declare const reminders: schedulesTypes.Schedules<Transaction>;
type Order = Readonly<{ id: string; total: number }>;
declare const order: Order;
declare const placeOrder: sagasTypes.SagaDefinition;
declare const ref: sagasTypes.SagaRef;
declare const saga: sagasTypes.SagaStep;
declare const transaction: Transaction;
declare const accountId: string;
declare const pool: Pool;
declare const jobStore: jobsTypes.JobStore<PostgresTransaction>;
declare const ingest: jobsTypes.Jobs<PostgresTransaction>;
declare const steps: Readonly<Record<string, sagasTypes.ParticipantStep<Transaction>>>;
declare const accounts: CollectionReference;
declare const payments: Readonly<{
  charge(asked: object): Promise<Readonly<{ declined: boolean; id: string }>>;
}>;
declare const streams: orderTypes.OrderedDelivery;
declare const messages: outboxTypes.Relay;
declare const sweep: Sweep;
declare const deadLetters: library.Middleware;
declare const handler: library.Handler;
declare const book: library.Handler;
declare const message: library.Message;
declare const context: library.Context;
declare const request: receiveTypes.HttpRequest;
declare const response: { sendStatus(status: number): unknown };
declare const body: Uint8Array;
declare const contentLength: number;
declare function handle(): Promise<number>;
declare function charge(id: string, cents: number): Promise<library.Outcome>;
declare function decodeAvro(definition: string, data: Uint8Array): unknown;
declare function definitionOf(name: string, revisionId: string | undefined): Promise<string>;
`;

type Commented = Readonly<{ file: string; name: string; comment: string }>;

/** Of each declaration that is exported or a member of a type, its doc comment. */
async function comments(): Promise<readonly Commented[]> {
  const all: Commented[] = [];
  for (const file of await readdir(new URL('src/', LIBRARY), { recursive: true })) {
    if (
      !file.endsWith('.ts') ||
      /\.test\.ts$|(?:^|\/)testing\/(?!index|memory-publisher|virtual-clock)/.test(file)
    )
      continue;
    const source = await readFile(new URL(`src/${file}`, LIBRARY), 'utf8');
    for (const [, comment = '', name = ''] of source.matchAll(
      /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:export )?(?:async )?(?:function |const )?(\w+)/g,
    )) {
      all.push({ file, name, comment });
    }
  }
  return all;
}

const exampleOf = ({ comment }: Commented): string | undefined =>
  comment
    .split('@example\n')[1]
    ?.split('\n')
    .map((line) => line.replace(/^\s*\* ?/, ''))
    .join('\n');

/** Entry point and names of the functions that it exports. The environment is for the deployables alone. */
async function exported(): Promise<ReadonlyMap<string, readonly string[]>> {
  const manifest: unknown = JSON.parse(await readFile(new URL('package.json', LIBRARY), 'utf8'));
  const entries = Object.entries((manifest as { exports: Record<string, { source: string }> }).exports);
  const named = new Map<string, readonly string[]>();
  const taken = new Set<string>();
  for (const [entry, { source }] of entries) {
    if (entry === './environment') continue;
    const module = (await import(new URL(source, LIBRARY).href)) as Record<string, unknown>;
    // An entry point may export again what another one exports.
    const names = Object.keys(module).filter(
      (name) => typeof module[name] === 'function' && !taken.has(name),
    );
    for (const name of names) taken.add(name);
    named.set(entry.replace('.', 'pubsub-guarantees'), names);
  }
  return named;
}

test('every public function has an example', async () => {
  const shown = new Set(
    (await comments()).filter((one) => exampleOf(one) !== undefined).map(({ name }) => name),
  );
  const names = [...(await exported()).values()].flat().filter((name) => !name.endsWith('Error'));
  assert.ok(names.length > 60, `only ${names.length} functions are exported`);
  assert.deepEqual(
    names.filter((name) => !shown.has(name)),
    [],
  );
});

test('every example compiles', async () => {
  const imports = [...(await exported())].map(
    ([entry, names]) => `import { ${names.join(', ')} } from '${entry}';`,
  );
  const examples = (await comments()).flatMap((one) => {
    const code = exampleOf(one);
    return code === undefined ? [] : [`// ${one.file} ${one.name}\nasync () => {\n${code}\n};`];
  });
  assert.ok(examples.length > 60, `only ${examples.length} examples are found`);
  await mkdir(FOLDER, { recursive: true });
  await writeFile(new URL('examples.ts', FOLDER), [...imports, GIVEN, ...examples, ''].join('\n'));
  const compilerOptions = {
    rootDir: '../../..',
    composite: false,
    declaration: false,
    sourceMap: false,
    noEmit: true,
    allowImportingTsExtensions: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
    noImplicitReturns: false,
  };
  const config = { extends: '../../../tsconfig.base.json', compilerOptions, files: ['examples.ts'] };
  await writeFile(new URL('tsconfig.json', FOLDER), JSON.stringify(config));
  const said = await new Promise<string>((resolve) => {
    const args = [COMPILER, '-p', fileURLToPath(FOLDER), '--pretty', 'false'];
    execFile(process.execPath, args, { timeout: 280_000 }, (error, out, err) => {
      resolve(error === null ? '' : `${out}${err}` || error.message);
    });
  });
  assert.equal(said, '');
});
