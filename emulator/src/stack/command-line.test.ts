import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { folder } from './cli-fixture.ts';
import { readCommandLine } from './command-line.ts';
import { OptionError } from './option.ts';
import { planned } from './planned.ts';

function refusal(args: readonly string[]): string {
  try {
    planned(readCommandLine(args, {}));
  } catch (error) {
    assert.ok(error instanceof OptionError, String(error));
    assert.equal(error.message.includes('\n'), false);
    return error.message;
  }
  return 'accepted';
}

const REFUSED: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [['--services', 'pubsub,redis'], /^--services is "pubsub,redis"; accepted: pubsub,firestore,tasks or/],
  [['--services', ''], /^--services is empty/],
  [['--save', ''], /^--save is empty/],
  [['--project', 'a/b'], /^--project is "a\/b"; accepted: letters, digits/],
  [['--pubsub-port', '8701'], /^port 8701 is given to pubsub and to firestore$/],
  [['--pubsub-port', '-1'], /^Option '--pubsub-port' argument is ambiguous;/],
  [['--print-env', '--', 'true'], /^--print-env starts nothing, and so no command$/],
  // Node would take it for its own, wherever it stands: https://github.com/nodejs/node/issues/54232
  [['--env-file', 'x'], /^Unknown option '--env-file'/],
  [['--pubsub-port', '80'], /^--pubsub-port is "80"; accepted: a whole number from 1024 to 65535, or 0$/],
  [['--control-port', 'x'], /^--control-port is "x"/],
  [['--port-base', '65534'], /^--port-base is "65534"; accepted: a whole number from 1024 to 65532, or 0$/],
  [['--indexes', 'maybe'], /^--indexes is "maybe"; accepted: warn, enforce, off$/],
  [['--store', 'redis'], /^--store is for the toolkit: npm start$/],
  [['--jobs'], /^--jobs is for the toolkit: npm start$/],
  [['--toolkit', '--jobs', '--save', 'x'], /^--save is not possible with --jobs$/],
  [['--toolkit', '--jobs', '--print-env'], /^--print-env is not possible with --jobs: the port of Postgres/],
  [['--caller', 'me'], /^caller is "me"; accepted: user:EMAIL or serviceAccount:EMAIL$/],
  [['--toolkit', '--caller', 'user:a@b.c'], /^--caller is not for the toolkit/],
  [['--official', '--caller', 'user:a@b.c'], /^--caller is not possible with --official$/],
  [['--toolkit', '--seed', 'x'], /^--seed is not for the toolkit/],
  [['--official', '--save', 'x'], /^--save is not possible with --official$/],
  [['--official', '--external'], /^--external is not possible together with --official$/],
  [['--external'], /^--external needs PUBSUB_EMULATOR_HOST or FIRESTORE_EMULATOR_HOST; neither is set$/],
  [['--print-env', '--port-base', '0'], /^--print-env needs fixed ports: that of pubsub is any/],
  [['--seed', '/nowhere/s.yaml'], /^\/nowhere\/s\.yaml cannot be read: ENOENT/],
  [['--'], /^there is no command behind --$/],
];

for (const [args, says] of REFUSED) {
  test(`refuses "${args.join(' ')}" with one line`, () => assert.match(refusal(args), says));
}

/** Each list holds the one before ten times. */
const MANY_ALIASES = Array.from('abcdefgh', (name, index, names = 'abcdefgh') => {
  const before = index === 0 ? 'x' : `*${names[index - 1]}`;
  return `${name}: &${name} [${Array.from({ length: 10 }, () => before).join(', ')}]\n`;
}).join('');

const FILES: readonly (readonly [option: string, text: string, says: RegExp])[] = [
  ['seed', 'topics: [a\n', /^\S+:\d: /],
  ['faults', 'rules: [a\n', /^\S+: /],
  ['faults', '{ "rules": [{ "service": "redis" }] }', /^\S+: rules\[0\]\.service is "redis"/],
  ['load', '{', /^\S+ is not JSON: /],
  ['load', 'a\nb', /^\S+ is not JSON: .*"a b"/],
  ['seed', MANY_ALIASES, /^\S+: Excessive alias count/],
  ['faults', MANY_ALIASES, /^\S+: Excessive alias count/],
  ['seed', 'project: a/b\n', /^\S+:1: project: it is "a\/b"; accepted: letters/],
  ['seed', 'topics:\n  orders: 5\n', /^\S+:2: topics\.orders: 5 is no object/],
];

for (const [option, text, says] of FILES) {
  test(`refuses a --${option} file of ${JSON.stringify(text)} with one line that names it`, (t) => {
    const file = folder(t)('file');
    writeFileSync(file, text);
    const said = refusal([`--${option}`, file]);
    assert.match(said, says);
    assert.ok(said.startsWith(file));
  });
}

test('single ports win over the base, and 0 is any that is free', () => {
  const { start } = readCommandLine(['--port-base', '9000', '--tasks-port', '0', '--services', 'tasks'], {});
  assert.deepEqual(start, {
    kind: 'stack',
    options: {
      portBase: 9000,
      ports: { tasks: 0 },
      official: false,
      remoteTargets: false,
      indexes: {},
      services: ['tasks'],
    },
  });
});

test('other machines are sent to when it is asked for, also by the toolkit', () => {
  for (const args of [[], ['--toolkit']]) {
    const { start } = readCommandLine([...args, '--remote-targets'], {});
    assert.equal(start.options.remoteTargets, true);
  }
});

test('--project wins over that of the seed, and a mark in front of a file is no part of it', (t) => {
  const file = folder(t)('seed.json');
  writeFileSync(file, '\uFEFF{"project":"other","topics":["orders","projects/full/topics/orders"]}');
  const { start } = readCommandLine(['--project', 'shop', '--seed', file], {});
  assert.ok(start.kind === 'stack');
  const { seed, project = '' } = start.options;
  assert.deepEqual(
    seed?.in(project).steps.map(({ request }) => (request as { name?: string }).name),
    ['projects/shop/topics/orders', 'projects/full/topics/orders'],
  );
});

test('--external takes what the variables name', () => {
  const { start } = readCommandLine(['--external'], { PUBSUB_EMULATOR_HOST: 'localhost:8085' });
  assert.deepEqual(start.options.external, { pubsub: 'localhost:8085' });
});
