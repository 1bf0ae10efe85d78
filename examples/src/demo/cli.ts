/**
 * `npm run demo`: shows the three guarantees hold for real messages while the functions are killed.
 * Exit code 0 only if every guarantee held; 1 if one did not or the run failed; 2 for wrong options or a bad file,
 * before anything is started.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from 'pubsub-guarantees';
import { readEvents } from './event-file.ts';
import { parseOptions, USAGE, UsageError } from './options.ts';
import { progressOn } from './progress.ts';
import { renderJson, renderReport } from './table.ts';

const SHIPPED = fileURLToPath(new URL('../../events.ndjson', import.meta.url));
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
/** How long an interrupted run may take to close what it had started. */
const INTERRUPTED_MS = 2_000;
/** A connection that does not end must not keep a finished command alive. */
const GRACE_MS = 3_000;

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const events = await readEvents(options.file === undefined ? SHIPPED : pathOf(options.file), Date.now());
  const clock = systemClock();
  const progress = progressOn(process.stderr, clock.monotonic);
  const stop = new AbortController();
  for (const signal of Object.keys(SIGNALS) as (keyof typeof SIGNALS)[]) {
    process.on(signal, () => {
      const reason = new Interrupted(signal);
      stop.abort(reason);
      // What starts or stops just now is not waited for: the processes of the stack end with this one.
      setTimeout(() => process.exit(exitCodeOf(reason)), INTERRUPTED_MS).unref();
    });
  }
  try {
    // Loaded only now: Google's clients take a second to load, and a mistake in the file is reported without them.
    const [{ runDemo }, { onOrphaned }] = await Promise.all([
      import('./run.ts'),
      import('pubsub-guarantees-emulator'),
    ]);
    onOrphaned(() => stop.abort(new Interrupted('SIGTERM')));
    const { report, facts } = await runDemo({
      events,
      ...(options.redisUrl !== undefined && { redisUrl: options.redisUrl }),
      official: options.official,
      clock,
      signal: stop.signal,
      show: (text) => progress.show(text),
    });
    progress.close();
    console.log(renderReport(report, facts));
    if (options.json) console.log(renderJson(report, facts));
    return report.held ? 0 : 1;
  } finally {
    progress.close();
  }
}

class Interrupted extends Error {
  readonly exitCode: number;
  constructor(signal: keyof typeof SIGNALS) {
    super(`stopped by ${signal}`);
    this.exitCode = SIGNALS[signal];
  }
}

/** npm runs scripts in the package's folder and says where the user was. */
function pathOf(file: string): string {
  const called = resolve(process.env['INIT_CWD'] ?? '.', file);
  return existsSync(called) ? called : resolve(file);
}

function exitCodeOf(error: unknown): number {
  const text = error instanceof Error ? error.message : String(error);
  console.error(`demo: ${text}`);
  if (error instanceof UsageError) return 2;
  return error instanceof Interrupted ? error.exitCode : 1;
}

// Otherwise Google's clients look for a metadata server, and warn that there is none.
process.env['METADATA_SERVER_DETECTION'] ??= 'none';
process.exitCode = await main().catch(exitCodeOf);
setTimeout(() => process.exit(), GRACE_MS).unref();
