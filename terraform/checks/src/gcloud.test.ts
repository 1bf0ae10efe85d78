/**
 * `deploy/gcloud.sh`: what its dry run prints comes to what Terraform plans; it changes nothing before every check has
 * passed; and what is there already it does not create again. A program of our own stands in for gcloud.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { differences } from './facts/facts.ts';
import { factsOfDryRun } from './facts/of-commands.ts';
import { factsOfPlan } from './facts/of-plan.ts';
import { readPlan } from './plans.ts';
import { sha256sum } from './stand-in/sha256sum.ts';

const SCRIPT = fileURLToPath(new URL('../../../deploy/gcloud.sh', import.meta.url));
const IN_PROJECT = ['--project', 'demo-project', '--region', 'europe-west1'];
const FUNCTIONS = [
  'orders-once:dedup:orders:orders-unique',
  'reminders:delay:reminders:reminders-due',
  'ledger-fifo:fifo:ledger:ledger-ordered',
  'payments-pipe:pipeline:payments:payments-ready',
].flatMap((text) => ['--function', text]);
const COMPLETE = [...IN_PROJECT, '--queues', 'delay-a,delay-b', ...FUNCTIONS];
const BUILDER = 'builder@demo-project.iam.gserviceaccount.com';
const EXISTING = [
  ...IN_PROJECT,
  '--existing-topics',
  '--existing-database',
  '--no-monitoring',
  ...Object.entries({
    '--republisher': 'cloud-run',
    '--database': '(default)',
    '--function': 'later:delay:reminders:reminders-due',
    '--build-account': BUILDER,
  }).flat(),
];

type Ran = Readonly<{ code: number; out: string; err: string }>;

const script = async (args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ran> =>
  new Promise((resolve) => {
    const env = { PATH: process.env['PATH'], ...environment };
    execFile('bash', [SCRIPT, ...args], { env }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1, out, err });
    });
  });

describe('the dry run', () => {
  test('comes to what Terraform plans for complete', async () => {
    const { code, out, err } = await script(['--dry-run', ...COMPLETE]);
    assert.equal(code, 0, err);
    assert.deepEqual(
      differences(factsOfPlan((await readPlan('complete')).resources), factsOfDryRun(out)),
      [],
    );
  });

  test('comes to what Terraform plans for existing-project, which enables no services', async () => {
    const { code, out, err } = await script(['--dry-run', ...EXISTING]);
    assert.equal(code, 0, err);
    const plan = factsOfPlan((await readPlan('existing-project')).resources);
    const found = differences(plan, factsOfDryRun(out));
    assert.deepEqual(
      found.filter((line) => !line.startsWith('only gcloud: service ')),
      [],
    );
  });

  test('comes to what Terraform plans with Redis, relays of outboxes and an orchestrator of sagas', async () => {
    const outboxes = ['--outbox', 'orders-once:reminders', '--outbox', 'ledger-fifo:orders'];
    const sagas = ['--function', 'order-sagas:saga:saga:stock,couriers'];
    const triggers = ['--outbox-trigger', 'ledger-fifo'];
    const more = [
      '--redis',
      'default:default',
      '--app-engine-service',
      'default',
      ...outboxes,
      ...sagas,
      ...triggers,
    ];
    const { code, out, err } = await script(['--dry-run', ...COMPLETE, ...more]);
    assert.equal(code, 0, err);
    const plan = factsOfPlan((await readPlan('redis')).resources);
    assert.deepEqual(differences(plan, factsOfDryRun(out)), []);
    const evicting = out.replace('maxmemory-policy=noeviction', 'maxmemory-policy=allkeys-lru');
    assert.deepEqual(differences(plan, factsOfDryRun(evicting)), [
      'redis guarantees: evicts is noeviction in Terraform and allkeys-lru in gcloud',
    ]);
  });

  test('that lacks a grant, or says another deadline, differs from the plan', async () => {
    const { out } = await script(['--dry-run', ...COMPLETE]);
    const plan = factsOfPlan((await readPlan('complete')).resources);
    const without = out
      .split('\n')
      .filter((line) => !/orders-unique .*pubsub\.publisher/.test(line))
      .join('\n');
    assert.deepEqual(differences(plan, factsOfDryRun(without)), [
      'only Terraform: grant on topic orders-unique: roles/pubsub.publisher to serviceAccount:orders-once-run@demo-project.iam.gserviceaccount.com',
    ]);
    const later = out
      .replace('orders-once-push --project=demo-project --topic=orders', '$&')
      .replace('--ack-deadline=90', '--ack-deadline=60');
    assert.deepEqual(differences(plan, factsOfDryRun(later)), [
      'subscription orders-once-push: ackDeadline is 90 in Terraform and 60 in gcloud',
    ]);
  });

  test('needs neither gcloud nor a package', async () => {
    const { code, err } = await script(['--dry-run', '--packages', '/nowhere', ...COMPLETE], {
      PATH: '/usr/bin:/bin',
    });
    assert.equal(code, 0, err);
  });
});

describe('what is asked for wrongly is refused with what is accepted:', () => {
  const REFUSED: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [[], /--project is not set/],
    [IN_PROJECT, /--function is not set/],
    [[...COMPLETE, '--function', 'x'], /accepted: NAME:KIND:SOURCE:TARGET/],
    [
      [...COMPLETE, '--function', 'again:once:a-topic:b-topic'],
      /the kind must be dedup, delay, fifo, pipeline or saga/,
    ],
    [
      [...COMPLETE, '--outbox-trigger', 'orders-once'],
      /--outbox-trigger is orders-once; accepted: the name of a function with --outbox/,
    ],
    [[...COMPLETE, '--function', 'again:dedup:a-topic:a-topic'], /comes round for ever/],
    [[...COMPLETE, '--function', 'reminders:dedup:a-topic:b-topic'], /the name reminders is given twice/],
    [[...COMPLETE, '--function', 'orders-in-the-morning-once:dedup:a-topic:b-topic'], /3 to 20/],
    [[...COMPLETE, '--region', 'europe'], /accepted: a region/],
    [[...COMPLETE, '--republisher', 'kubernetes'], /accepted: app-engine or cloud-run/],
    [[...COMPLETE, '--wake-queue', 'delay-a'], /another than --queues, because it stops trying soon/],
    [
      [...COMPLETE, '--function', 'sagas:saga:saga:stock,saga'],
      /published to where it came from comes round for ever/,
    ],
    [[...COMPLETE, '--function', 'sagas:saga:saga:stock,,couriers'], /is not the ID of a topic/],
    [
      [...COMPLETE, '--function', 'sagas:saga:saga:stock', '--env', 'sagas:DEDUP_ON_CONFLICT=process'],
      /accepted: a value like \^\(deadLetter\|ack\)\$/,
    ],
    [
      [...COMPLETE, '--env', 'reminders:SAGA_MODULE=sagas.js'],
      /SAGA_MODULE is for saga, and reminders is delay/,
    ],
    [[...COMPLETE, '--nonsense'], /unknown option --nonsense/],
    [[...COMPLETE, '--queues'], /--queues needs a value/],
  ];
  for (const [args, says] of REFUSED) {
    test(says.source, async () => {
      const { code, err } = await script(['--dry-run', ...args]);
      assert.equal(code, 1);
      assert.match(err, says);
    });
  }
});

describe('with a gcloud', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gcloud-'));
    for (const [name, text] of Object.entries({ gcloud: GCLOUD, curl: CURL, ...sha256sum() })) {
      await writeFile(join(folder, name), text);
      await chmod(join(folder, name), 0o755);
    }
    for (const name of ['functions', 'republisher']) {
      await mkdir(join(folder, 'build', name), { recursive: true });
      await writeFile(join(folder, 'build', name, 'package.json'), '{}');
    }
    await writeFile(
      join(folder, 'build', 'republisher', 'app.yaml'),
      'runtime: nodejs22\nservice: republisher\n',
    );
  });
  after(async () => rm(folder, { recursive: true }));

  let runs = 0;
  const against = async (
    state: Readonly<Record<string, string>>,
    more: readonly string[] = [],
  ): Promise<Ran & { calls: readonly string[] }> => {
    runs += 1;
    const calls = join(folder, `calls-${runs}`);
    const ran = await script(['--packages', join(folder, 'build'), ...COMPLETE, ...more], {
      PATH: `${folder}:${process.env['PATH'] ?? ''}`,
      CALLS: calls,
      ...state,
    });
    const text = await readFile(calls, 'utf8').catch(() => '');
    return { ...ran, calls: text.split('\n').filter((line) => line !== '') };
  };
  const changes = (calls: readonly string[]): readonly string[] =>
    calls.filter((call) => !/(^version$| (describe|list|get-value|print-access-token)\b)/.test(call));

  const CHECKS: Readonly<Record<string, readonly [Record<string, string>, RegExp]>> = {
    'another active project': [
      { ACTIVE: 'other' },
      /the active project is other, not demo-project; run: gcloud config set/,
    ],
    'an API that is not enabled': [
      { DISABLED: 'cloudtasks' },
      /APIs are not enabled: cloudtasks\.googleapis\.com; add --enable-services/,
    ],
    'a permission that is lacking': [
      { LACKING: 'pubsub.topics.create' },
      /you lack permissions on demo-project: pubsub\.topics\.create/,
    ],
    'no App Engine app': [{ APP: '' }, /no App Engine app; run: gcloud app create/],
    'an app in another region': [{ APP: 'us-central' }, /the App Engine app is in us-central1/],
    'an app without a default service': [{ NO_SERVICE: 'yes' }, /use --app-engine-service default/],
  };
  for (const [title, [state, says]] of Object.entries(CHECKS)) {
    test(`${title} ends the run before anything is changed`, async () => {
      const { code, err, calls } = await against(state);
      assert.equal(code, 1);
      assert.match(err, says);
      assert.deepEqual(changes(calls), []);
    });
  }

  test('sagas without their definitions end the run before anything is changed, and are deployed with them', async () => {
    const saga = [
      '--function',
      'order-sagas:saga:saga:stock',
      '--env',
      'order-sagas:SAGA_MODULE=own/trips.mjs',
    ];
    const without = await against({}, saga);
    assert.equal(without.code, 1);
    assert.match(
      without.err,
      /functions\/own\/trips\.mjs is not there, and order-sagas has no sagas without/,
    );
    assert.deepEqual(changes(without.calls), []);
    await mkdir(join(folder, 'build/functions/own'));
    await writeFile(join(folder, 'build/functions/own/trips.mjs'), '');
    const { code, err, calls } = await against({}, saga);
    assert.equal(code, 0, err);
    const [deployed] = calls.filter((call) => call.startsWith('functions deploy order-sagas '));
    assert.match(deployed ?? '', /--entry-point=saga .*;SAGA_TOPIC=saga;.*;SAGA_MODULE=own\/trips\.mjs/);
    assert.doesNotMatch(deployed ?? '', /TARGET_TOPIC/);
  });

  test('an empty project gets what the dry run prints', async () => {
    const [dry, { code, err, out }] = await Promise.all([script(['--dry-run', ...COMPLETE]), against({})]);
    assert.equal(code, 0, err);
    const commands = (text: string): readonly string[] =>
      text
        .split('\n')
        .filter(
          (line) => line.startsWith('gcloud ') && !/services enable|app deploy|dashboards create/.test(line),
        );
    const planned = (text: string): string =>
      text
        .replaceAll('PROJECT_NUMBER', '123')
        .replaceAll(/URL_OF_([\w-]+)/g, '$1.example')
        .replaceAll('--source=build/', `--source=${folder}/build/`);
    assert.deepEqual(commands(out), commands(planned(dry.out)));
    assert.match(out, /gcloud app deploy \S+\/app\.yaml .*--version=v[0-9a-f]{12}/);
    assert.match(out, /services identity create/);
  });

  test('App Engine gets the republisher with its variables', async () => {
    const { code } = await against({}, ['--app-engine-service', 'later']);
    assert.equal(code, 0);
    assert.deepEqual((await readFile(join(folder, `calls-${runs}.yaml`), 'utf8')).split('\n'), [
      'runtime: nodejs22',
      'service: later',
      'env_variables:',
      '  ALLOWED_TOPICS: "payments,reminders-due"',
      '  COLLECTION_PREFIX: "pubsub-guarantees"',
      '  DEAD_LETTER_TOPIC: "republisher-dead-letters"',
      `  DELAY_QUEUES: "${['a', 'b'].map((id) => `projects/demo-project/locations/europe-west1/queues/delay-${id}`).join(',')}"`,
      '  FIRESTORE_DATABASE: "pubsub-guarantees"',
      '  MAX_BYTES_IN_FLIGHT: "43245568"',
      '',
    ]);
  });

  test('nothing is created again, and what may have changed is updated', async () => {
    const { code, err, calls } = await against({ THERE: 'yes' });
    assert.equal(code, 0, err);
    const changed = changes(calls);
    assert.deepEqual(
      changed.filter((call) => / create\b/.test(call) && !/services identity create/.test(call)),
      [],
    );
    for (const updated of [
      'tasks queues update',
      'scheduler jobs update',
      'subscriptions update',
      'functions deploy',
      'app services set-traffic',
    ]) {
      assert.ok(
        changed.some((call) => call.includes(updated)),
        updated,
      );
    }
  });

  test('an answer that is neither yes nor no ends the run, because the thing may be there', async () => {
    const { code, err } = await against({ BROKEN: 'pubsub topics describe' });
    assert.equal(code, 1);
    assert.match(err, /topics describe orders .*: unavailable/);
  });

  test('missing APIs are enabled where that is asked for', async () => {
    const { code, calls } = await against({ DISABLED: 'cloudtasks' }, ['--enable-services']);
    assert.equal(code, 0);
    assert.ok(calls.includes('services enable cloudtasks.googleapis.com --project=demo-project'));
  });
});

const hasShellcheck = spawnSync('shellcheck', ['--version']).status === 0;

test('shellcheck has nothing to say', hasShellcheck ? {} : { skip: 'shellcheck is not on the path' }, () => {
  const { status, stdout } = spawnSync('shellcheck', ['--external-sources', SCRIPT], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});

/** A project that is empty, or has everything (`THERE`); each call is written to the file `CALLS`. */
const GCLOUD = `#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CALLS"
if [ -n "\${BROKEN:-}" ] && [[ "$*" == "$BROKEN"* ]]; then echo unavailable >&2; exit 1; fi
case "$*" in
  version) printf 'Google Cloud SDK 580.0.0\\nalpha 2026.11.01\\nbeta 2026.11.01\\n' ;;
  'config get-value project') echo "\${ACTIVE:-demo-project}" ;;
  'projects describe'*) echo 123 ;;
  'services list'*)
    for api in appengine artifactregistry cloudbuild cloudfunctions cloudresourcemanager cloudscheduler cloudtasks firestore iam logging monitoring pubsub run storage; do
      [ "$api" = "\${DISABLED:-}" ] || echo "$api.googleapis.com"
    done ;;
  'auth print-access-token') echo token ;;
  'app describe'*) [ -n "\${APP-europe-west}" ] || { echo 'The current Google Cloud project [demo-project] does not contain an App Engine application.' >&2; exit 1; }; echo "\${APP-europe-west}" ;;
  'app services describe'*) [ -z "\${NO_SERVICE:-}" ] || { echo 'NOT_FOUND: Could not find Service.' >&2; exit 1; } ;;
  'app deploy'*) cat "$3" >"$CALLS.yaml" ;;
  'functions describe'*) echo "https://$3.example" ;;
  *' policies list'* | *' dashboards list'*) [ -z "\${THERE:-}" ] || echo projects/p/x/1 ;;
  *' describe '*) [ -n "\${THERE:-}" ] || { echo 'NOT_FOUND: it is not there' >&2; exit 1; } ;;
esac
`;

const CURL = `#!/usr/bin/env bash
cat >/dev/null
asked=$(grep -oE '[a-z]+\\.[A-Za-z]+\\.[A-Za-z]+' <<<"$*")
for permission in $asked; do
  [ "$permission" = "\${LACKING:-}" ] || printf '"%s"\\n' "$permission"
done
`;
