/** Command lines of `jobs`: what they mean, and what is wrong with one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HELP, readCommandLine } from './command-line.ts';
import type { JobsLine } from './jobs-command.ts';
import { CommandLineError } from './usage.ts';

const URL_OF = 'postgresql://app:secret@db:5432/shop';
const environment = { DATABASE_URL: URL_OF };

function read(args: readonly string[], from: Readonly<Record<string, string>> = environment): JobsLine {
  const line = readCommandLine(['jobs', ...args], from);
  assert.ok(line !== 'help' && line.area === 'jobs');
  return line;
}

test('each command of jobs is read with its options', () => {
  const commands: readonly (readonly [readonly string[], JobsLine['command']])[] = [
    [['list'], { kind: 'list', query: { pageSize: 100 } }],
    [
      ['list', '--role', 'ingest', '--state', 'waiting', '--page', '17', '--page-size', '5'],
      { kind: 'list', query: { role: 'ingest', state: 'waiting', pageToken: '17', pageSize: 5 } },
    ],
    [['show', '17'], { kind: 'show', id: '17' }],
    [['cancel', '17'], { kind: 'cancel', id: '17' }],
    [['dead', '--role', 'export', '--page', '9'], { kind: 'dead', role: 'export', page: '9', pageSize: 100 }],
    [['relaunch', '17', '18'], { kind: 'relaunch', ids: ['17', '18'] }],
    [['discard', '17'], { kind: 'discard', ids: ['17'] }],
    [['health'], { kind: 'health', accepted: {} }],
    [
      ['health', '--backlog', '0', '--backlog-for', '10m', '--pick-up-p95', '1s', '--snapshot-age', '1h'],
      { kind: 'health', accepted: { backlog: 0, backlogFor: '10m', pickUpP95: '1s', snapshotAge: '1h' } },
    ],
    [['tidy'], { kind: 'tidy' }],
    [['migrate'], { kind: 'migrate', grants: {} }],
    [
      ['migrate', '--grant', 'app_export=export,mail', '--grant', 'desk=*'],
      { kind: 'migrate', grants: { app_export: ['export', 'mail'], desk: '*' } },
    ],
    [['work', './handlers.js'], { kind: 'work', module: './handlers.js' }],
    [
      ['work', 'h.js', '--concurrency', '4', '--direct-url', URL_OF],
      { kind: 'work', module: 'h.js', concurrency: 4, directUrl: URL_OF },
    ],
  ];
  for (const [args, command] of commands) assert.deepEqual(read(args).command, command, args.join(' '));
});

test('where Postgres is comes from the option, then DATABASE_URL, then the variables of libpq', () => {
  assert.deepEqual(read(['tidy', '--json', '--schema', 'work']), {
    area: 'jobs',
    command: { kind: 'tidy' },
    url: URL_OF,
    schema: 'work',
    json: true,
  });
  assert.equal(read(['tidy', '--url', 'postgres://db/other']).url, 'postgres://db/other');
  assert.equal(read(['tidy'], { PGHOST: 'db' }).url, undefined);
});

test('a wrong command line of jobs names what is wrong and what is accepted, and never a password', () => {
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /accepted: list, show, cancel, dead, relaunch, discard, health, tidy, migrate, work$/],
    [['list', 'x'], /accepted: jobs list$/],
    [['list', '--state', 'dead'], /^--state is "dead"; accepted: ready, running, waiting$/],
    [['list', '--page', 'x'], /^--page is "x"; accepted: the ID of a job/],
    [['list', '--page-size', '501'], /^--page-size is "501"/],
    [['list', '--grant', 'a=b'], /^--grant is no option of jobs list/],
    [['list', '--project', 'p'], /^--project is no option of jobs/],
    [['list', '--schema', 'a-b'], /^--schema is "a-b"/],
    [['show'], /accepted: jobs show ID$/],
    [['show', '1; drop table job'], /^ID is "1; drop table job"/],
    [['cancel', '1', '2'], /accepted: jobs cancel ID$/],
    [['relaunch'], /accepted: jobs relaunch ID …$/],
    [['discard', '0'], /^ID is "0"/],
    [['health', '--backlog', '-1'], /^--backlog is "-1"|argument is ambiguous/],
    [['health', '--pick-up-p95', '5'], /^--pick-up-p95 is "5"; accepted: a whole number with ms/],
    [['migrate', '--grant', 'app'], /^--grant is "app"; accepted: ACCOUNT=ROLE,ROLE/],
    [['work'], /accepted: jobs work MODULE$/],
    [['work', 'h.js', '--concurrency', '0'], /^--concurrency is "0"; accepted: a whole number from 1$/],
    [['tidy', '--url', 'mysql://app:secret@db/shop'], /^--url is no URL of Postgres; accepted: postgresql:/],
    [['work', 'h.js', '--direct-url', 'secret'], /^--direct-url is no URL of Postgres/],
  ];
  for (const [args, message] of wrong) {
    assert.throws(
      () => read(args),
      (error) =>
        error instanceof CommandLineError && message.test(error.message) && !/secret/.test(error.message),
      args.join(' '),
    );
  }
  assert.throws(() => read(['tidy'], {}), /^CommandLineError: --url is not given; accepted: .*DATABASE_URL$/);
});

test('the help names each command of jobs', () => {
  for (const name of 'list show cancel dead relaunch discard health tidy migrate work'.split(' '))
    assert.match(HELP, new RegExp(`^  jobs ${name} `, 'm'));
});
