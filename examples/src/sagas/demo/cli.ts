/**
 * `npm run demo:saga`: shows that each saga ends whole, while every process that works on it is killed. Exit code 0 only if
 * no effect is there twice, none is half done and no saga is open; 1 otherwise; 2 for wrong options.
 */
import { parseArgs } from 'node:util';
import { systemClock } from 'pubsub-guarantees';
import { onOrphaned } from 'pubsub-guarantees-emulator';
import { progressOn } from '../../demo/progress.ts';
import { holds, judge } from './judge.ts';
import { type RunFacts, runSagas } from './run.ts';

const USAGE = `npm run demo:saga -- [options]

  --orders N   how many sagas, 1 to 2000 (default 64)
  --kills N    how many SIGKILLs, 0 to 500, one process after the other (default 5: each process once)
  --limit S    seconds until what is open is counted as open, 1 to 3600 (default 300)
  --json       the last line alone
  --help`;

class UsageError extends Error {}

type Options = Readonly<{ orders: number; kills: number; limit: number; json: boolean; help: boolean }>;

function optionsOf(args: readonly string[]): Options {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  let values;
  try {
    const options = { orders: text, kills: text, limit: text, json: flag, help: flag };
    ({ values } = parseArgs({ args: [...args], options }));
  } catch (error) {
    throw new UsageError(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
  }
  const { orders = '64', kills = '5', limit = '300', json, help } = values;
  return {
    orders: wholeNumber('orders', orders, 1, 2_000),
    kills: wholeNumber('kills', kills, 0, 500),
    limit: wholeNumber('limit', limit, 1, 3_600),
    json,
    help,
  };
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}; accepted: ${least} to ${most}`);
}

async function main(): Promise<number> {
  const { orders, kills, limit, json, help } = optionsOf(process.argv.slice(2));
  if (help) {
    console.log(USAGE);
    return 0;
  }
  const clock = systemClock();
  const began = clock.monotonic();
  const progress = progressOn(process.stderr, clock.monotonic);
  const interrupted = new AbortController();
  // The processes of the stack, and the participants, end with this one.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => process.exit(130));
  onOrphaned(() => process.exit(143));
  const over = setTimeout(() => interrupted.abort(), limit * 1_000);
  try {
    const facts = await runSagas({
      orders,
      kills,
      signal: interrupted.signal,
      show: (text) => progress.show(text),
    });
    const report = judge(facts.ends, facts.counted);
    const held = holds(report);
    progress.close();
    if (!json) console.log(table(facts, held));
    const seconds = Math.round((clock.monotonic() - began) / 100) / 10;
    console.log(JSON.stringify({ ...report, seconds }));
    return held ? 0 : 1;
  } finally {
    clearTimeout(over);
    progress.close();
  }
}

function table({ ends, counted, killed, kitchenDied, backlog }: RunFacts, held: boolean): string {
  const rows = [...Map.groupBy(ends, ({ kind }) => kind)].map(([kind, own]) => {
    const count = (is: (end: (typeof own)[number]) => boolean): number => own.filter(is).length;
    return [
      kind,
      own.length,
      count(({ state }) => state === 'completed'),
      count(({ state }) => state === 'compensated'),
      count(({ state }) => state === 'running' || state === 'compensating'),
      count(({ wasInDoubt }) => wasInDoubt),
    ];
  });
  const head = ['orders', 'sagas', 'completed', 'compensated', 'open', 'pivot in doubt'];
  const width = Math.max(...rows.map(([kind]) => String(kind).length));
  const line = (cells: readonly unknown[]): string =>
    cells
      .map((cell, column) => (column === 0 ? String(cell).padEnd(width) : String(cell).padStart(12)))
      .join('  ');
  const names = Object.entries(killed).map(([name, count]) => `${name} ${count}`);
  return [
    line(head),
    ...rows.map(line),
    '',
    `SIGKILL: ${names.join(', ')}; the kitchen, between its commit and its reply: ${kitchenDied}`,
    `effects: ${counted.effects.length} committed; ${counted.dropped} runs of a handler were dropped with their transaction`,
    `left in subscriptions: ${backlog}`,
    held ? 'held: every saga is whole' : 'NOT held',
  ].join('\n');
}

// Otherwise Google's clients look for a metadata server, and warn that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';
try {
  process.exit(await main());
} catch (error) {
  console.error(`demo: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
