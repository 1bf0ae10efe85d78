/**
 * The end of a function's process. Cloud Run sends SIGTERM ten seconds before SIGKILL, and the framework ends the process
 * at once: what has run of a stream would run again, and the stream would stand until its lease is over. So the process
 * first counts what has run, releases its streams, and answers the requests that it has.
 *
 * A process that does not get this time leaves leases that expire, as a crash does.
 */
import { setTimeout as wait } from 'node:timers/promises';

export type Ending = Readonly<{
  /** What a request does. The first one takes the signal over: the framework's listener stands once it listens. */
  request<Result>(work: () => Promise<Result>): Promise<Result>;
}>;

/** Of the ten seconds: https://cloud.google.com/run/docs/container-contract#instance-shutdown */
const STOP_MS = 8_500;
/** For answers to be written, once nothing keeps them back. */
const ANSWER_MS = 1_000;

/** `stop` is that of `orderedDelivery`. Called when the process starts, before the framework listens. */
export function endingWith(stop: () => Promise<void>): Ending {
  // Those of programs that were loaded before, for example an SDK of OpenTelemetry, stay.
  const before = new Set(process.listeners('SIGTERM'));
  let isTakenOver = false;
  let open = 0;

  async function end(): Promise<void> {
    await Promise.race([stop(), wait(STOP_MS)]);
    for (const until = performance.now() + ANSWER_MS; open > 0 && performance.now() < until; ) await wait(10);
    process.exit(0);
  }
  function takeOver(): void {
    if (isTakenOver) return;
    isTakenOver = true;
    for (const listener of process.listeners('SIGTERM'))
      if (!before.has(listener)) process.removeListener('SIGTERM', listener);
    process.once('SIGTERM', () => void end());
  }

  return {
    async request(work) {
      takeOver();
      open += 1;
      try {
        return await work();
      } finally {
        open -= 1;
      }
    },
  };
}
