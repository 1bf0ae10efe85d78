/**
 * The clock of a program that runs beside the local stack: wall time is the stack's, which can be frozen and moved.
 *
 * The stack moves its clock only while nothing is under way, so the time that was read when a request came in holds
 * until it is answered: ask with `sync()` once for each request. Requests that come together share a reading, so that
 * many of them cost no more than few, and a busy machine does not refuse them all for want of the time. What is measured within a request (leases, deadlines,
 * pauses) stays on this process's own monotonic clock.
 */
import { type Clock, systemClock } from './clock.ts';
import { ConfigError, TransientError } from './errors.ts';
import { clock as aClock, isObject, text } from './options.ts';

export type LocalClock = Clock &
  Readonly<{
    /** Reads the stack's time. Rejects with TransientError `CLOCK_UNREACHABLE`; the time read last goes on. */
    sync(): Promise<void>;
  }>;

export type ReadClock = () => Promise<Readonly<{ nowMs: number; frozen: boolean }>>;

/** `controlUrl` is the stack's control address, as `npm start` prints it. */
export function localClock(controlUrl: string, real: Clock = systemClock()): LocalClock {
  text('controlUrl', controlUrl);
  aClock('real', real);
  return followingClock(() => readFrom(controlUrl), real);
}

/**
 * The clock of a deployable: the local stack's where `LOCAL_STACK_CONTROL` names one beside the emulator variables,
 * and the machine's everywhere else. Throws ConfigError for a value that is no URL.
 */
export function clockFrom(environment: Readonly<Record<string, string | undefined>>): LocalClock {
  isObject('environment', environment);
  const url = environment['LOCAL_STACK_CONTROL'];
  // Without an emulator this is production, where nobody may move the time.
  if (!url || !environment['PUBSUB_EMULATOR_HOST'])
    return { ...systemClock(), sync: () => Promise.resolve() };
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return localClock(url);
  const accepted = 'the control address of the local stack, http://host:port';
  throw new ConfigError(
    'INVALID_VARIABLE',
    `LOCAL_STACK_CONTROL is ${JSON.stringify(url)}; accepted: ${accepted}`,
  );
}

/** The same over any way to read it. */
export function followingClock(read: ReadClock, real: Clock): LocalClock {
  let known: Readonly<{ nowMs: number; frozen: boolean; at: number }> | undefined;
  let reading: Promise<void> | undefined;
  /** Not sent yet: requests that come while a reading is on its way share the next one, because the clock may have been moved since. */
  let next: Promise<void> | undefined;

  async function readNow(): Promise<void> {
    const { nowMs, frozen } = await read();
    known = { nowMs, frozen, at: real.monotonic() };
  }
  function start(): Promise<void> {
    next = undefined;
    reading = readNow().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  return {
    now() {
      if (known === undefined) return real.now();
      // Whole milliseconds, as everywhere: the monotonic clock has fractions.
      return Math.floor(known.frozen ? known.nowMs : known.nowMs + (real.monotonic() - known.at));
    },
    monotonic: () => real.monotonic(),
    after: (milliseconds, callback) => real.after(milliseconds, callback),
    sync() {
      if (next !== undefined) return next;
      if (reading === undefined) return start();
      next = reading.then(start, start);
      return next;
    },
  };
}

/** On a machine that is far too busy; a delivery has sixty seconds. */
const LONGEST_READ_MS = 20_000;

async function readFrom(controlUrl: string): Promise<Readonly<{ nowMs: number; frozen: boolean }>> {
  try {
    const response = await fetch(`${controlUrl}/clock`, { signal: AbortSignal.timeout(LONGEST_READ_MS) });
    const body = (await response.json()) as { nowMs?: unknown; frozen?: unknown };
    if (!response.ok || typeof body.nowMs !== 'number' || typeof body.frozen !== 'boolean') {
      throw new Error(`status ${response.status}`);
    }
    return { nowMs: body.nowMs, frozen: body.frozen };
  } catch (cause) {
    throw new TransientError('CLOCK_UNREACHABLE', `the stack's clock at ${controlUrl} does not answer`, {
      cause,
    });
  }
}
