/**
 * The wall clock of a program that runs on the local stack: it is the stack's, which can be frozen and moved. A deployed
 * program knows nothing of this; child-preload.ts puts it in the place of `Date`.
 *
 * The stack moves its clock only while nothing is in flight, so the time that was read when a request arrived holds
 * until it is answered: `sync()` is called once for each request. Requests that arrive together share a reading, so that
 * many of them cost no more than few. What is measured within a request (leases, deadlines, pauses) stays on the
 * process's own monotonic clock.
 */
export type ProgramClock = Readonly<{
  /** Milliseconds since the epoch, whole; undefined before the first reading. */
  now(): number | undefined;
  /** Reads the stack's time. Rejects as the reading does; the time read last goes on. */
  sync(): Promise<void>;
}>;

export type ReadTime = () => Promise<Readonly<{ nowMs: number; frozen: boolean }>>;

/** `monotonic`: milliseconds from an arbitrary start, of this process. */
export function programClock(read: ReadTime, monotonic: () => number): ProgramClock {
  let known: Readonly<{ nowMs: number; frozen: boolean; at: number }> | undefined;
  let reading: Promise<void> | undefined;
  /** Not sent yet: requests that come while a reading is on its way share the next one, because the clock may have been moved since. */
  let next: Promise<void> | undefined;

  async function readNow(): Promise<void> {
    const { nowMs, frozen } = await read();
    known = { nowMs, frozen, at: monotonic() };
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
      if (known === undefined) return undefined;
      // Whole milliseconds, as everywhere: the monotonic clock has fractions.
      return Math.floor(known.frozen ? known.nowMs : known.nowMs + (monotonic() - known.at));
    },
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

/** Asks the control API at `controlUrl`. An answer that is none is an error that names it. */
export async function readStackTime(
  controlUrl: string,
): Promise<Readonly<{ nowMs: number; frozen: boolean }>> {
  try {
    const response = await fetch(`${controlUrl}/clock`, { signal: AbortSignal.timeout(LONGEST_READ_MS) });
    const body = (await response.json()) as { nowMs?: unknown; frozen?: unknown };
    if (!response.ok || typeof body.nowMs !== 'number' || typeof body.frozen !== 'boolean') {
      throw new Error(`status ${response.status}`);
    }
    return { nowMs: body.nowMs, frozen: body.frozen };
  } catch (cause) {
    throw new Error(`the stack's clock at ${controlUrl} does not answer`, { cause });
  }
}

/** `Date` with `now` for the present; dates that are given keep what they are. */
export function dateAt(now: () => number, machine: DateConstructor = Date): DateConstructor {
  return new Proxy(machine, {
    construct: (target, args: unknown[], made) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, made) as Date,
    apply: (target) => new target(now()).toString(),
    get: (target, name): unknown => (name === 'now' ? now : Reflect.get(target, name)),
  });
}
