/**
 * Alerts on lines of the log: each is passed by the line that the code writes, as Cloud Logging keeps it, and by no
 * other line.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { factsOfDryRun } from './facts/of-commands.ts';
import { factsOfPlan } from './facts/of-plan.ts';
import { at, text } from './facts/values.ts';
import { passesLogFilter } from './filters.ts';
import type { Json, JsonObject } from './module.ts';
import { plan, type Planned, readPlan, runPlan } from './plans.ts';
import { terraform } from './terraform.ts';

const ROOT = new URL('../../../', import.meta.url);

type Made = (...given: unknown[]) => unknown;
/** By its place: the workspaces of what is deployed are no dependencies of the checks. */
const imported = async <Exports = Record<string, Made>>(path: string): Promise<Exports> =>
  (await import(new URL(path, ROOT).href)) as Exports;

const { jsonLog } = await imported('shared/src/log.ts');
const { systemClock } = await imported<{ systemClock: () => object }>('shared/src/clock.ts');
const { reportEvents } = await imported<{ reportEvents: Made }>('shared/src/order/report.ts');
const { streamSweep } = await imported<{
  streamSweep: (policy: object, visit: Made) => (handler: Made) => (context: object) => Promise<unknown>;
}>('shared/src/order/sweep.ts');

type Writing = Readonly<{
  transact: (work: (transaction: unknown) => Promise<void>) => Promise<void>;
  writeSlot: (transaction: unknown, slot: object) => void;
}>;
type World = Readonly<{
  store: Writing;
  failing: Map<string, string[]>;
  add: (text: string, slot?: object) => Promise<unknown>;
  relayOf: (options: object) => Readonly<{ sweep(context: object): Promise<unknown> }>;
}>;
const { world } = await imported<{ world: () => World }>('proofs/src/outbox/world.ts');
const { encodeMessage } = await imported('shared/src/stored-message.ts');
type VirtualClock = Readonly<{ now(): number; advance(milliseconds: number): Promise<void> }>;
type Handle = (message: object, context: unknown) => Promise<unknown>;
type Defining = Readonly<{ retriable(name: string, step: object): object }>;
const { virtualClock, memoryInbox, memorySagas } = await imported<{
  virtualClock: () => VirtualClock;
  memoryInbox: (options: object) => object;
  memorySagas: (inbox: object, options: object) => object;
}>('shared/src/testing/index.ts');
const { contextFor } = await imported<{ contextFor: (clock: object, parts: object) => unknown }>(
  'shared/src/context.ts',
);
const { inbox } = await imported<{ inbox: (store: object, options: object) => (handler: unknown) => Handle }>(
  'shared/src/dedup/inbox.ts',
);
const { defineSaga, orchestrator, sweepSagas } = await imported<{
  defineSaga: (name: string, options: object) => Defining;
  orchestrator: (store: object, sagas: readonly object[], options: object) => unknown;
  sweepSagas: (store: object, ...rest: readonly object[]) => (context: unknown) => Promise<unknown>;
}>('shared/src/sagas/index.ts');
const { memoryTasks } = await imported('shared/src/tasks/memory.ts');
const { republish } = await imported('shared/src/delay/republish.ts');
const { encodeDelayed } = await imported<{ encodeDelayed: (delayed: object) => Uint8Array<ArrayBuffer> }>(
  'shared/src/tasks/task-body.ts',
);
const { authentication } = await imported('appengine/src/auth.ts');
type Room = Readonly<{
  during(work: () => Promise<unknown>): Promise<unknown>;
  take(bytes: number): boolean;
}>;
const { bytesInFlight } = await imported<{ bytesInFlight: (options: object) => Room }>(
  'shared/src/receive/bytes-in-flight.ts',
);
type Running = Readonly<{ port: number; close(): Promise<void> }>;
const { startServer } = await imported<{ startServer: (...given: object[]) => Promise<Running> }>(
  'appengine/src/server.ts',
);

const onCloudRun = (service: string): JsonObject => ({
  type: 'cloud_run_revision',
  labels: { service_name: service },
});
const onAppEngine = (service: string): JsonObject => ({ type: 'gae_app', labels: { module_id: service } });

/** What a service writes, as an entry of its own. */
async function entryOf(resource: JsonObject, write: (log: unknown) => unknown): Promise<Json> {
  const lines: string[] = [];
  await write(jsonLog?.((line: unknown) => lines.push(String(line)), { labels: { function: 'fifo' } }));
  assert.equal(lines.length, 1, lines.join('\n'));
  const { severity, ...payload } = JSON.parse(lines[0] ?? '') as JsonObject;
  return { severity: severity ?? '', resource, jsonPayload: payload };
}

const ref = { consumer: 'ledger-fifo', source: 's', key: 'k' };
/** A number that failed for good, under `onPoison`. */
const poison = (onPoison: 'block' | 'skip') => (log: unknown) => {
  const verdict = { attempts: 10, isPoison: true, failure: { error: new Error('no') } };
  const ended = { kind: onPoison === 'skip' ? 'skipped' : 'failed', entry: { number: 7 }, verdict };
  return reportEvents({ onPoison }, { log }, ref, { ended, takesOver: false, unknownStale: [] });
};
const oldGap = (log: unknown) => {
  const state = { waitingSince: 0, last: 1 };
  const streams = [{ ref, state, nowMs: 400_000 }];
  const list = async (_: string, query: { state: string }) => ({
    streams: query.state === 'waiting' ? streams : [],
  });
  const policy = { store: { list }, clock: systemClock(), gapTimeoutMs: 300_000, onGap: 'wait' };
  const never = async (): Promise<void> => assert.fail('nothing is due');
  const context = { consumer: 'ledger-fifo', log, deadline: Infinity, signal: AbortSignal.timeout(60_000) };
  return streamSweep(policy, never)(never)(context);
};

/** A pass over one row whose publish ends so. */
const passed = (how: string, slot?: object) => async (log: unknown) => {
  const { failing, add, relayOf } = world();
  failing.set('bad', [how]);
  await add('bad', slot);
  await relayOf({ log }).sweep({ signal: new AbortController().signal });
};
/** A pass over a row that a delivery of the inbox left behind, and that no topic takes. */
const leftBehind = async (log: unknown) => {
  const { failing, store, relayOf } = world();
  failing.set('bad', ['permanent']);
  const message = { id: 'k.w.0', data: Buffer.from('bad'), attributes: {}, publishTime: new Date(0) };
  const row = { id: 'k.w.0', group: 'k.w', topic: 'projects/p/topics/t', message: encodeMessage?.(message) };
  await store.transact(async (transaction) => store.writeSlot(transaction, { rows: [row] }));
  await relayOf({ log }).sweep({ signal: new AbortController().signal });
};

/** A saga whose only step, which must succeed in the end, is refused; or one whose timer has not come. */
const sagaLine = (what: 'parked' | 'woken') => async (log: unknown) => {
  const clock = virtualClock();
  const ports = { clock, publisher: { publish: async () => '1' } };
  const store = memoryInbox({ clock });
  const instances = memorySagas(store, { clock });
  const trip = defineSaga('trip', { version: 1 }).retriable('letter', { topic: 'letters', do: () => ({}) });
  const handle = inbox(store, ports)(orchestrator(instances, [trip], { topic: 'saga' }));
  const deliver = async (id: string, attributes: object, to?: unknown): Promise<unknown> => {
    const all = { saga: 'trip', sagaId: 't1', dedupId: id, ...attributes };
    const message = { id, data: Buffer.from('{}'), attributes: all, publishTime: new Date(clock.now()) };
    return handle(
      message,
      contextFor(clock, { consumer: 'order-sagas', ...(to !== undefined && { log: to }) }),
    );
  };
  await deliver('start', { sagaAction: 'start' });
  if (what === 'woken') {
    await clock.advance(200_000);
    await sweepSagas(instances, ports.publisher, { topic: 'saga', clock })(
      contextFor(clock, { consumer: 'order-sagas', log }),
    );
    return;
  }
  const reply = { sagaAction: 'do', sagaStep: 'letter', sagaAttempt: '1', sagaOutcome: 'refused' };
  await deliver('reply', { ...reply, sagaCode: 'NO' }, log);
};

const OIDC = { audiences: ['https://republisher.example'], serviceAccounts: ['caller@p.example'] };
const QUEUE = { 'X-AppEngine-QueueName': 'delay' };
/** A task for a topic that is not on the list, over HTTP, to a republisher that takes either proof of its callers. */
const task =
  (headers: Readonly<Record<string, string>>, keys = async () => ({ certificates: {}, maxAgeMs: 0 })) =>
  async (log: unknown) => {
    const clock = virtualClock();
    const ports = {
      publisher: { publish: async () => '1' },
      deadLetters: (handler: unknown) => handler,
    };
    const { port, close } = await startServer(
      {
        authenticate: authentication?.({ appEngine: { queues: ['delay'] }, oidc: OIDC }, keys),
        republish: republish?.(
          { ...ports, queue: memoryTasks?.({ clock }) },
          { clock, log: log as object, allowedTopics: ['projects/p/topics/out'] },
        ),
        log: log as object,
      },
      { port: 0, host: '127.0.0.1' },
    );
    const message = { id: '7', data: Buffer.from('x'), attributes: {}, publishTime: new Date(0) };
    const due = { dueTimeMs: 0, scheduleTimeMs: 0, attempt: 0, hop: 0 };
    const body = encodeDelayed({ key: 'k', topic: 'projects/p/topics/other', ...due, message });
    try {
      await fetch(`http://127.0.0.1:${port}/republish`, { method: 'POST', headers, body });
    } finally {
      await close();
    }
  };

const filtersOf = (resources: readonly Planned[]): ReadonlyMap<string, string> =>
  new Map(
    resources
      .filter(({ type }) => type === 'google_monitoring_alert_policy')
      .map(
        ({ address, values }) =>
          [
            /\["(\w+)"\]$/.exec(address)?.[1] ?? /\.(\w+)\[0\]$/.exec(address)?.[1] ?? '',
            text(at(values, 'conditions', 'condition_matched_log', 'filter')),
          ] as const,
      )
      .filter(([, filter]) => filter !== ''),
  );
/** The plan with all that is made on request. */
const filters = filtersOf((await readPlan('redis')).resources);
const alertsOf = async (
  resource: JsonObject,
  write: (log: unknown) => unknown,
  of = filters,
): Promise<readonly string[]> => {
  const entry = await entryOf(resource, write);
  return [...of].filter(([, filter]) => passesLogFilter(filter, entry)).map(([name]) => name);
};

const EVERYWHERE = ['app', 'blocked', 'gaps', 'memory', 'refused', 'republisher_memory', 'sweep_failures'];
test('those of the outbox and of sagas are there only where a sweep relays one, and an orchestrator is', async () => {
  assert.deepEqual([...filters.keys()].toSorted(), [...EVERYWHERE, 'outbox', 'parked'].toSorted());
  const without = filtersOf((await readPlan('complete')).resources);
  assert.deepEqual([...without.keys()].toSorted(), EVERYWHERE);
});

/** As a process refuses what does not fit beside what it has. */
const full = async (log: unknown) => {
  const room = bytesInFlight({ limit: 1, clock: virtualClock(), log, capability: 'delivery' });
  await room.during(async () => {
    room.take(1);
    await room.during(async () => room.take(1));
  });
};

test('bytes that do not fit the memory raise an alert, of functions and of the republisher', async () => {
  for (const service of ['orders-once', 'reminders', 'ledger-fifo', 'payments-pipe'])
    assert.deepEqual(await alertsOf(onCloudRun(service), full), ['memory']);
  assert.deepEqual(await alertsOf(onAppEngine('default'), full), ['republisher_memory']);
  assert.deepEqual(await alertsOf(onAppEngine('shop'), full), []);
});

/** As the documents of Cloud Scheduler and of the audit log have them: no process of ours writes them. */
const passing = (entry: Json): readonly string[] =>
  [...filters].filter(([, filter]) => passesLogFilter(filter, entry)).map(([name]) => name);

test('a sweep that fails, or cannot be called, raises an alert; one that runs, and the job of another team, raise none', () => {
  const line = (job: string, severity: string): Json => ({
    severity,
    resource: { type: 'cloud_scheduler_job', labels: { job_id: job, location: 'europe-west1' } },
    jsonPayload: { status: severity === 'ERROR' ? 'UNAVAILABLE' : '', jobName: job },
  });
  const others = ['reminders-sweep', 'ledger-fifo-sweep', 'payments-pipe-sweep', 'orders-once-sweep'];
  for (const job of [...others, 'order-sagas-sweep']) {
    assert.deepEqual(passing(line(job, 'ERROR')), ['sweep_failures']);
    assert.deepEqual(passing(line(job, 'INFO')), []);
  }
  assert.deepEqual(passing(line('nightly', 'ERROR')), []);
});

test('a change of the App Engine application raises an alert', () => {
  const change = (methodName: string): Json => ({
    severity: 'NOTICE',
    resource: { type: 'gae_app', labels: { module_id: '' } },
    protoPayload: { serviceName: 'appengine.googleapis.com', methodName },
  });
  assert.deepEqual(passing(change('google.appengine.v1.Applications.UpdateApplication')), ['app']);
  assert.deepEqual(passing(change('google.appengine.v1.Versions.CreateVersion')), []);
});

test('a blocked stream raises an alert, in every function with streams', async () => {
  for (const service of ['ledger-fifo', 'payments-pipe'])
    assert.deepEqual(await alertsOf(onCloudRun(service), poison('block')), ['blocked']);
});

test('an old gap raises an alert', async () => {
  assert.deepEqual(await alertsOf(onCloudRun('ledger-fifo'), oldGap), ['gaps']);
});

test('a stream that goes on, and a service of another team, raise no alert', async () => {
  assert.deepEqual(await alertsOf(onCloudRun('ledger-fifo'), poison('skip')), []);
  assert.deepEqual(await alertsOf(onCloudRun('reminders'), poison('block')), []);
});

test('a row of the outbox that can never be published raises an alert, in every function that relays, and no other', async () => {
  for (const write of [passed('permanent', { sequenceKey: 'k' }), passed('permanent'), leftBehind]) {
    for (const service of ['ledger-fifo', 'orders-once', 'order-sagas'])
      assert.deepEqual(await alertsOf(onCloudRun(service), write), ['outbox']);
    assert.deepEqual(await alertsOf(onCloudRun('payments-pipe'), write), []);
  }
});

test('a row of the outbox that is tried again raises no alert', async () => {
  for (const slot of [{ sequenceKey: 'k' }, undefined])
    assert.deepEqual(await alertsOf(onCloudRun('ledger-fifo'), passed('refused', slot)), []);
});

test('a saga that waits for an operator raises an alert, and one whose timer was late raises none', async () => {
  assert.deepEqual(await alertsOf(onCloudRun('order-sagas'), sagaLine('parked')), ['parked']);
  assert.deepEqual(await alertsOf(onCloudRun('order-sagas'), sagaLine('woken')), []);
  assert.deepEqual(await alertsOf(onCloudRun('payments-pipe'), sagaLine('parked')), []);
});

const badProof = { Authorization: 'Bearer a.b.c' };
const signed = `Bearer ${Buffer.from('{"alg":"RS256","kid":"k"}').toString('base64url')}.e30.e30`;
const noKeys = async () => Promise.reject(new Error('no network'));

test('a task for a topic that is not on the list, and a proof that is refused, raise an alert on App Engine', async () => {
  // Where the plan makes the app, its first service is the default one.
  assert.deepEqual(await alertsOf(onAppEngine('default'), task(QUEUE)), ['refused']);
  assert.deepEqual(await alertsOf(onAppEngine('default'), task(badProof)), ['refused']);
  const named = filtersOf((await readPlan('complete')).resources);
  assert.deepEqual(await alertsOf(onAppEngine('republisher'), task(QUEUE), named), ['refused']);
});

test('a stranger without a proof, keys that cannot be read, and another service, raise no alert', async () => {
  assert.deepEqual(await alertsOf(onAppEngine('default'), task({})), []);
  assert.deepEqual(await alertsOf(onAppEngine('default'), task({ Authorization: signed }, noKeys)), []);
  for (const resource of [onAppEngine('shop'), onCloudRun('default'), onCloudRun('republisher')])
    assert.deepEqual(await alertsOf(resource, task(QUEUE)), []);
});

const there = await terraform();
test('on Cloud Run the republisher raises alerts too, by Terraform and by gcloud alike', {
  skip: there === undefined && 'terraform is not on the path',
}, async () => {
  try {
    const file = join(there!.folder, 'examples/existing-project/main.tf');
    const example = await readFile(file, 'utf8');
    const watched = (republisher: string, outboxes: string): string => `${example}
        module "monitoring" {
          source = "../../modules/monitoring"
          project_id = var.project_id
          functions = { later = { subscription = module.later.subscription.name } }
          dead_letter_subscriptions = {}
          republisher = ${republisher}
          outboxes = ${outboxes}
        }`;
    await writeFile(file, watched('module.republisher.service', '[]'));
    const resources = await plan(there!, 'existing-project');
    const own = filtersOf(resources);
    assert.deepEqual([...own.keys()].toSorted(), ['memory', 'refused', 'republisher_memory']);
    assert.deepEqual(await alertsOf(onCloudRun('republisher'), full, own), ['republisher_memory']);
    assert.deepEqual(await alertsOf(onCloudRun('republisher'), task(QUEUE), own), ['refused']);
    assert.deepEqual(await alertsOf(onCloudRun('republisher'), task(badProof), own), ['refused']);
    assert.deepEqual(await alertsOf(onAppEngine('republisher'), task(QUEUE), own), []);

    const given = '--project demo-project --region europe-west1 --republisher cloud-run --dry-run';
    const { stdout } = await promisify(execFile)('bash', [
      fileURLToPath(new URL('deploy/gcloud.sh', ROOT)),
      ...given.split(' '),
      '--function',
      'later:delay:reminders:reminders-due',
    ]);
    const name = 'alert pubsub-guarantees: refused tasks';
    assert.notEqual(factsOfPlan(resources).get(name), undefined);
    assert.deepEqual(factsOfDryRun(stdout).get(name), factsOfPlan(resources).get(name));

    for (const [republisher, outboxes, says] of [
      ['{}', '[]', /republisher must have one of app_engine and cloud_run/],
      ['{ app_engine = "a", cloud_run = "b" }', '[]', /republisher must have one of/],
      ['null', '["other"]', /outboxes must be names that functions has/],
    ] as const) {
      await writeFile(file, watched(republisher, outboxes));
      const { code, output } = await runPlan(there!, 'existing-project');
      assert.equal(code, 1, output);
      assert.match(output.replaceAll(/\s*\n[│|]?\s*/g, ' '), says);
    }
  } finally {
    await there?.close();
  }
});

test('a filter that is not understood is an error, not a pass', () => {
  assert.throws(() => passesLogFilter('severity >= ERROR', {}), /not understood/);
});
