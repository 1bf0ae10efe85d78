/**
 * What any worker does for all of them beside its own jobs: makes due jobs ready, decides about expired leases, makes
 * recurring jobs, deletes what has expired. Any number of processes do it at once, and one that dies leaves it to the others.
 *
 * It also notices when this process's event loop was blocked for so long that leases are in danger.
 */
import { sleep } from '../clock.ts';
import { codeOf } from '../errors.ts';
import type { JobStore } from './job-store.ts';
import { measureRescued, measureVitals } from './measures.ts';
import type { Recurring } from './recurring.ts';
import type { WorkerSettings } from './worker-options.ts';

export type MaintenancePorts = Readonly<{
  stop: AbortSignal;
  /** Jobs have become ready. */
  due(): void;
  recurring: Recurring;
  /** Kinds of the jobs that run. */
  inHand(): readonly string[];
}>;

const TIDY_EVERY_MS = 60_000;
const BATCH = 500;

/** Resolves when `stop` is aborted. Never rejects. */
export async function maintenance<Tx>(
  store: Pick<JobStore<Tx>, 'rescue' | 'tidy' | 'vitals' | 'wake'>,
  settings: WorkerSettings<Tx>,
  { stop, due, inHand, recurring }: MaintenancePorts,
): Promise<void> {
  const { clock, log, random, pollMs } = settings;
  const shortestLeaseMs = Math.min(...[...settings.roles.values()].map(({ leaseMs }) => leaseMs));
  let tidyAtMs = clock.monotonic() + TIDY_EVERY_MS * random();

  const pass = async (): Promise<void> => {
    for (;;) {
      const changed = await store.rescue(BATCH);
      measureRescued(changed);
      if (changed.promoted + changed.rescued > 0) due();
      if (!changed.more || stop.aborted) break;
    }
    if (clock.monotonic() < tidyAtMs) return;
    tidyAtMs = clock.monotonic() + TIDY_EVERY_MS;
    await store.tidy();
    await measureVitals(store);
  };

  /** A hint for other workers, which poll without it. */
  const wake = (role: string): Promise<void> => store.wake(role).catch(() => {});

  while (!stop.aborted) {
    const waitMs = Math.min(1_000, pollMs) * (0.8 + random() * 0.4);
    const wokenAtMs = clock.monotonic() + waitMs;
    await sleep(clock, waitMs, stop);
    if (stop.aborted) return;
    const blockedMs = clock.monotonic() - wokenAtMs;
    if (blockedMs > shortestLeaseMs / 3) {
      log.warn('the event loop was blocked: leases could not be renewed', {
        event: 'event_loop_blocked',
        milliseconds: Math.round(blockedMs),
        kinds: [...new Set(inHand())].join(' '),
      });
    }
    try {
      await pass();
    } catch (error) {
      log.warn('a pass over due jobs failed', { event: 'job_rescue_failed', code: codeOf(error) });
    }
    const roles = await recurring.pass();
    if (roles.size > 0) due();
    for (const role of roles) void wake(role);
  }
}
