/**
 * `npm test`: every test file, in lanes by what it imports (`lanes.ts`). `npm test -- FILE…` runs these alone,
 * `--slowest` prints where the time went, `--searches` runs only the files that search random schedules
 * (`npm run test:deep`, with a larger TEST_SCHEDULES). The last line is `N passed, N failed, N skipped`.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { units } from './lanes.ts';
import { leaked } from './leaks.ts';
import { type Ran, runUnits } from './run.ts';
import { countsOf, type FileRow, rowsOf } from './tally.ts';
import { testFiles } from './test-files.ts';

/** For one test, longer than `until` waits on a busy machine; a search of `test:deep` takes longer. */
const TEST_TIMEOUT_MS = 300_000;
const SEARCH_TIMEOUT_MS = 3_600_000;
const ROWS = 25;

const { values, positionals } = parseArgs({
  options: {
    slowest: { type: 'boolean' },
    searches: { type: 'boolean' },
    root: { type: 'string', default: fileURLToPath(new URL('../../../', import.meta.url)) },
  },
  allowPositionals: true,
});
const { root } = values;
// What a process of the suite compiled, the next ones load; `npm ci` would empty a folder in node_modules.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'node-compile-cache');
const known = testFiles(root);
const unknown = positionals.filter((file) => !known.includes(file));
if (unknown.length > 0) {
  console.error(`error: ${unknown.join(', ')} is no test file; accepted: paths such as ${known[0] ?? ''}`);
  process.exit(2);
}
const isSearch = (file: string): boolean =>
  readFileSync(join(root, file), 'utf8').includes("env['TEST_SCHEDULES']");
const named = positionals.length > 0 ? positionals : known;
const chosen = values.searches ? named.filter(isSearch) : named;

const reporter = new spec();
reporter.pipe(process.stdout);
const started = performance.now();
const total = { passed: 0, failed: 0, skipped: 0 };
const rows: FileRow[] = [];
const silent: string[] = [];

function ended(ran: Ran): void {
  const counts = countsOf(ran);
  for (const key of ['passed', 'failed', 'skipped'] as const) total[key] += counts[key];
  const own = rowsOf(ran, root);
  rows.push(...own);
  // A file that failed as a whole has been counted.
  const empty = counts.failed > 0 ? [] : own.filter(({ tests }) => tests === 0);
  silent.push(...empty.map(({ file }) => `${file} ran no test`));
  for (const event of ran.events) {
    // The sums of one unit would read as those of the suite.
    if (event.type === 'test:summary' || (event.type === 'test:diagnostic' && event.data.file === undefined))
      continue;
    reporter.write(event);
  }
}

const cores = availableParallelism();
const mark = `${process.pid}.${Date.now()}:`;
await runUnits(units(root, chosen), {
  root,
  // Files that start processes mostly wait for them, so that as many others run beside them.
  slots: { waiting: cores, working: cores },
  testTimeoutMs: values.searches ? SEARCH_TIMEOUT_MS : TEST_TIMEOUT_MS,
  mark,
  ended,
});
const wrong = [...silent, ...(await leaked(mark))];
await new Promise((resolve) => reporter.on('end', resolve).end());

if (values.slowest) {
  console.log(`\n${'seconds'.padStart(8)}${'CPU s'.padStart(8)}${'tests'.padStart(7)}  file`);
  for (const row of rows.toSorted((left, right) => right.seconds - left.seconds).slice(0, ROWS)) {
    const numbers = [row.seconds.toFixed(1).padStart(8), row.cpuSeconds.toFixed(1).padStart(8)];
    console.log(`${numbers.join('')}${String(row.tests).padStart(7)}  ${row.file}`);
  }
  const cpu = rows.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  console.log(
    `${((performance.now() - started) / 1_000).toFixed(1).padStart(8)}${cpu.toFixed(1).padStart(8)}  in all`,
  );
}
for (const line of wrong) console.error(`error: ${line}`);
const failed = total.failed + wrong.length;
console.log(`\n${total.passed} passed, ${failed} failed, ${total.skipped} skipped`);
process.exitCode = failed > 0 ? 1 : 0;
