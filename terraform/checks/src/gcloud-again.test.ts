/**
 * `deploy/gcloud.sh` in a project that remembers: a run that breaks off half-way is run again and comes to the same,
 * what is there under its names, but cannot be made what is wanted, ends the run before anything is changed, and every
 * command is one that gcloud takes.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sha256sum } from './stand-in/sha256sum.ts';

const SCRIPT = fileURLToPath(new URL('../../../deploy/gcloud.sh', import.meta.url));
const REDIS = ['--redis', 'net:sub', '--function', 'orders-once:dedup:orders:orders-unique'];
const PIPE = ['--function', 'pay:pipeline:payments:payments-ready', '--env', 'pay:ORDER_START=counter'];
const URL_SECRET = 'rediss://:pass-word@10.0.0.3:6378';

let folder: string;
let count = 0;

before(async () => {
  // Nothing may break at a space.
  folder = await mkdtemp(join(tmpdir(), 'gcloud again '));
  for (const [name, text] of Object.entries({ gcloud: GCLOUD, curl: CURL, ...sha256sum() })) {
    await writeFile(join(folder, name), text);
    await chmod(join(folder, name), 0o755);
  }
  for (const name of ['functions', 'republisher']) {
    await mkdir(join(folder, 'my build', name), { recursive: true });
    await writeFile(join(folder, 'my build', name, 'package.json'), '{}');
  }
  await writeFile(join(folder, 'my build/republisher/app.yaml'), 'runtime: nodejs22\nservice: republisher\n');
});
after(async () => rm(folder, { recursive: true }));

type Ran = Readonly<{
  code: number | null;
  out: string;
  err: string;
  changes: readonly string[];
  state: string;
}>;

/** `state`: a project that another run has left behind. Absent: an empty one. */
async function run(
  args: readonly string[],
  { state, ...more }: Readonly<{ state?: string }> & Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const project = join(folder, `project ${(count += 1)}`);
  await mkdir(project);
  if (state !== undefined) await cp(state, project, { recursive: true });
  const changed = join(folder, `changes ${count}`);
  await writeFile(changed, '');
  const given = [
    '--project=demo-project',
    '--region',
    'europe-west1',
    '--packages',
    join(folder, 'my build'),
  ];
  const { status, stdout, stderr } = spawnSync('bash', [SCRIPT, ...given, ...args], {
    encoding: 'utf8',
    env: { PATH: `${folder}:${process.env['PATH']}`, STATE: project, CHANGED: changed, ...more },
  });
  const changes = (await readFile(changed, 'utf8')).split('\n').slice(0, -1);
  return { code: status, out: stdout, err: stderr, changes, state: project };
}

const things = async (state: string): Promise<readonly string[]> => (await readdir(state)).toSorted();

test('a run that breaks off anywhere is run again, and the project is as after a whole run', async () => {
  const args = [...REDIS, ...PIPE];
  const whole = await run(args);
  assert.equal(whole.code, 0, whole.err);
  for (const part of [0.5, 0.97]) {
    const at = String(Math.ceil(whole.changes.length * part));
    const broken = await run(args, { FAIL_AT: at });
    assert.equal(broken.code, 1, `at ${at}: ${broken.out}`);
    const again = await run(args, { state: broken.state });
    assert.equal(again.code, 0, again.err);
    assert.deepEqual(await things(again.state), await things(whole.state));
  }
});

test('in a project that has it all, nothing is created, and no password is stored again', async () => {
  const first = await run(REDIS);
  const second = await run(REDIS, { state: first.state });
  assert.equal(second.code, 0, second.err);
  assert.deepEqual(
    second.changes.filter((line) => / create\b|versions add/.test(line) && !/identity create/.test(line)),
    [],
  );
  assert.equal(await readFile(join(first.state, 'value guarantees-redis-url'), 'utf8'), URL_SECRET);
  assert.equal(await readFile(join(first.state, 'value guarantees-redis-ca'), 'utf8'), 'first\nsecond');
  for (const { out, err, changes } of [first, second]) {
    assert.doesNotMatch(`${out}${err}${changes.join()}`, /pass-word/);
  }
});

test('a setting that was changed by hand is set back', async () => {
  const first = await run(PIPE);
  const { changes } = await run([...PIPE, '--notification-channels=projects/p/notificationChannels/7'], {
    state: first.state,
  });
  const of = (start: string): string => changes.find((line) => line.startsWith(start)) ?? '';
  assert.match(
    of('tasks queues update delay '),
    /--max-attempts=-1 .*--clear-max-retry-duration.*--clear-http-uri/,
  );
  assert.match(of('pubsub subscriptions update pay-dead-letters'), /--expiration-period=never/);
  assert.match(of('pubsub subscriptions update pay-push'), /--ack-deadline=90.*--dead-letter-topic=pay-dead/);
  assert.match(of('alpha monitoring policies update'), /--set-notification-channels=projects\/p\/notif/);
});

const FIRST: readonly (readonly [title: string, saying: Readonly<Record<string, string>>, says: RegExp])[] = [
  [
    'a subscription of another topic',
    { ASKED: 'pubsub subscriptions describe pay-push', ANSWER: 'invoices' },
    /pay-push is of the topic invoices, not payments, which cannot be changed/,
  ],
  [
    'a database in another mode',
    { ASKED: 'firestore databases describe', ANSWER: 'DATASTORE_MODE STANDARD' },
    /must be in Native mode/,
  ],
  [
    'a function of the first generation',
    { ASKED: 'functions describe pay', ANSWER: 'GEN_1' },
    /first generation; give it another name/,
  ],
  [
    'Redis without TLS',
    { ASKED: 'redis instances describe', ANSWER: 'DISABLED net' },
    /must have SERVER_AUTH/,
  ],
  [
    'a gcloud that is too old for Redis',
    { ASKED: 'version', ANSWER: 'Google Cloud SDK 528.0.0\nalpha 1\nbeta 1' },
    /needs 558/,
  ],
  [
    'a gcloud without alpha',
    { ASKED: 'version', ANSWER: 'Google Cloud SDK 600.0.0\nbeta 1' },
    /components install alpha/,
  ],
  [
    'permissions that Google does not list',
    { REFUSES: 'yes' },
    /cannot be asked for: \{"error": "no such API"\}/,
  ],
];
for (const [title, saying, says] of FIRST) {
  test(`${title} ends the run before anything is changed`, async () => {
    const { code, err, changes } = await run([...REDIS, ...PIPE], saying);
    assert.equal(code, 1);
    assert.match(err, says);
    assert.deepEqual(changes, []);
  });
}

const REFUSED: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [[...PIPE, '--notification-channels', '--dry-run'], /--notification-channels needs a value/],
  [[...PIPE, '--notification-channels', 'my channel'], /accepted: projects\/P\/notificationChannels\/N/],
  [[...PIPE, '--build-account', "it's me"], /accepted: the e-mail of a service account/],
  [[...PIPE, '--queues', 'a,a'], /--queues: a is given twice/],
  [[...PIPE, '--redis', 'net:sub'], /--redis is for dedup functions/],
  [[...REDIS, '--redis', 'net'], /accepted: NETWORK:SUBNETWORK/],
  [[...PIPE, '--function', 'republisher:dedup:one-topic:two-topic'], /is that of the republisher/],
  [[...PIPE, '--function', 'abc:dedup:one-topic:abc-dead-letters'], /where its own dead letters go/],
  [[...PIPE, '--function', 'abc:dedup:google-topic:two-topic'], /google-topic is not the ID of a topic/],
  [[...PIPE, '--env', 'pay:TARGET_TOPIC=x'], /TARGET_TOPIC is set by the script itself/],
  [[...PIPE, '--env', 'pay:ORDER_STRAT=1'], /no function reads ORDER_STRAT/],
  [[...REDIS, '--env', 'orders-once:ORDER_START=1'], /ORDER_START is for fifo and pipeline/],
  [[...PIPE, '--env', 'pay:ORDER_START=first'], /accepted: a value like/],
  [[...PIPE, '--env', 'pay=x'], /accepted: NAME:VARIABLE=VALUE/],
  [[...PIPE, '--env', 'you:LOG_LEVEL=debug'], /there is no --function you/],
  [[...PIPE, '--outbox', 'you:topic'], /with the name of a --function/],
];
for (const [args, says] of REFUSED) {
  test(`refused with what is accepted: ${says.source}`, async () => {
    const { code, err, changes } = await run(args);
    assert.equal(code, 1);
    assert.match(err, says);
    assert.deepEqual(changes, []);
  });
}

test('the outbox gives dedup a sweep, and the right to publish to exactly the topics that it is given', async () => {
  const { code, err, changes } = await run([...REDIS, '--outbox=orders-once:orders,orders-unique']);
  assert.equal(code, 0, err);
  assert.ok(changes.some((line) => line.startsWith('scheduler jobs create http orders-once-sweep')));
  assert.match(
    changes.find((line) => line.startsWith('functions deploy')) ?? '',
    /FIRESTORE_DATABASE=.*;OUTBOX=on;/,
  );
  const publishes = changes.filter((line) => /orders-once-run.*pubsub.publisher/.test(line));
  assert.deepEqual(
    publishes.map((line) => line.split(' ')[3]),
    ['orders-once-dead-letters', 'orders-unique', 'orders'],
  );
});

/** Where gcloud is, and the Python that it runs on; undefined where it is not. */
function installed(): Readonly<{ root: string; python: string; release: number }> | undefined {
  const format = 'value[separator=";"](installation.sdk_root,basic.python_location,basic.version)';
  const { status, stdout } = spawnSync('gcloud', ['info', `--format=${format}`], { encoding: 'utf8' });
  const [root, python, version] = (stdout ?? '').trim().split(';');
  if (status !== 0 || !root || !python || !version) return undefined;
  return { root, python, release: Number.parseInt(version, 10) };
}

const sdk = installed();

test('gcloud itself takes every command', {
  skip: sdk === undefined && 'gcloud is not on the path',
}, async () => {
  const args = [
    ...REDIS,
    ...PIPE,
    '--function',
    'two:fifo:ledger:ledger-ordered',
    '--notification-channels=projects/p/notificationChannels/7',
  ];
  const first = await run(args);
  const again = await run(args, { state: first.state });
  const cloudRun = await run([...PIPE, '--republisher=cloud-run']);
  const rehearsed = await run([...args, '--destroy', '--dry-run']);
  const otherwise = await run([...PIPE, '--republisher=cloud-run', '--destroy', '--dry-run']);
  const lines = `${first.out}${again.out}${cloudRun.out}${rehearsed.out}${otherwise.out}`
    .split('\n')
    .filter((line) => line.startsWith('gcloud '));
  const known = lines.map((line) =>
    // gcloud has them since 558.
    sdk!.release >= 558 ? line : line.replace(/ --network=net --subnet=sub --direct-vpc-egress=\S+/, ''),
  );
  const wrong = 'gcloud pubsub topics create x --no-such-flag';
  const { stdout, stderr } = spawnSync(sdk!.python, ['-c', PARSES, sdk!.root], {
    encoding: 'utf8',
    input: [...new Set([...known, wrong])].join('\n'),
    env: { ...process.env, CLOUDSDK_CONFIG: join(folder, 'no settings') },
  });
  assert.deepEqual(stdout.split('\n'), [wrong, ''], stderr);
});

/** Prints each line that gcloud's own parser refuses; nothing is run. */
const PARSES = `
import sys, shlex
sys.path[:0] = [sys.argv[1] + '/lib', sys.argv[1] + '/lib/third_party']
from googlecloudsdk import gcloud_main
parser = gcloud_main.CreateCLI([])._CLI__parser
for line in sys.stdin.read().split('\\n'):
    try:
        parser.parse_args(shlex.split(line)[1:])
    except (Exception, SystemExit):
        print(line)
`;

/** Whatever is created is a file of the folder `STATE`; every change is a line of `CHANGED`, and number `FAIL_AT` fails. */
const GCLOUD = `#!/usr/bin/env bash
all="$*"
if [ -n "\${ASKED:-}" ] && [[ "$all" == "$ASKED"* ]]; then printf '%s\\n' "$ANSWER"; exit 0; fi
absent() { echo 'NOT_FOUND: it is not there' >&2; exit 1; }
name() { # the thing that is meant: its kind, and the word behind the verb, or a flag
  local word found=''
  for word in "$@"; do
    case "$word" in
      describe | create | update | deploy | http) found=yes ;;
      --database=* | --version=*) [ -z "$named" ] && named="\${word#*=}" ;;
      --policy=*) named="\${word#*displayName\\":\\"}" && named="\${named%%\\"*}" ;;
      --display-name=*) [ "$1" != alpha ] || named="\${word#*=}" ;;
      -*) ;;
      *) if [ -n "$found" ]; then [ -n "$named" ] || named="\${word%%@*}"; else kind+="$word "; fi ;;
    esac
  done
}
kind='' named=''
case "$all" in
  version) printf 'Google Cloud SDK 580.0.0\\nalpha 1\\nbeta 1\\n'; exit ;;
  'config get-value project') echo demo-project; exit ;;
  'projects describe'*) echo 123; exit ;;
  'services list'*)
    for api in appengine artifactregistry cloudbuild cloudfunctions cloudresourcemanager cloudscheduler cloudtasks firestore iam logging monitoring pubsub redis run secretmanager storage; do
      echo "$api.googleapis.com"
    done; exit ;;
  'auth print-access-token') echo token; exit ;;
  'app describe'*) echo europe-west; exit ;;
  'app services describe'* | 'compute networks subnets describe'*) exit ;;
  'redis instances get-auth-string'*) echo pass-word; exit ;;
  'redis instances describe'*'value[separator=":"]'*) echo 10.0.0.3:6378; exit ;;
  'redis instances describe'*serverCaCerts*) printf 'first\\nsecond\\n'; exit ;;
  'secrets versions access'*) [ -f "$STATE/value \${5#--secret=}" ] || absent; cat "$STATE/value \${5#--secret=}"; exit ;;
  *' policies list'*) title="\${6#*\\"}"; [ -f "$STATE/alpha monitoring policies \${title%\\"}" ] && echo projects/p/alertPolicies/1; exit 0 ;;
  *' dashboards list'*) [ -f "$STATE/dashboard" ] && echo projects/p/dashboards/1; exit 0 ;;
  'functions describe'*serviceConfig*) echo "https://$3.example"; exit ;;
  *' describe '*) name "$@"; [ -f "$STATE/$kind$named" ] || absent; exit 0 ;;
esac
printf '%s\\n' "\${all//$'\\n'/ }" >>"$CHANGED"
if [ "$(wc -l <"$CHANGED")" = "\${FAIL_AT:-}" ]; then echo unavailable >&2; exit 1; fi
case "$all" in
  'secrets versions add'*) cat >"$STATE/value $4" ;;
  'app deploy'*) version="\${5#--version=}"; : >"$STATE/app versions $version" ;;
  'monitoring dashboards create'*) : >"$STATE/dashboard" ;;
  'beta services identity create'*) ;;
  *' create '* | 'functions deploy '*) name "$@"; : >"$STATE/$kind$named" ;;
esac
`;

const CURL = `#!/usr/bin/env bash
cat >/dev/null
if [ -n "\${REFUSES:-}" ]; then echo '{"error": "no such API"}'; exit; fi
grep -oE '"[a-z]+\\.[A-Za-z]+\\.[A-Za-z]+"' <<<"$*"
`;
