/**
 * Does what Cloud Scheduler does in production, only more often: calls the sweep of every function that has one.
 * One call of each at a time; a function that is down is tried again at the next turn.
 */
import { type FunctionName, SWEPT } from './topology.ts';

export type Sweeping = Readonly<{
  /** Sweeps that are not answered yet. */
  running(): number;
  /** One sweep of each now; resolves when they are answered. */
  once(): Promise<void>;
  close(): Promise<void>;
}>;

/** A round of sweeps asks some hundred queries: more often, an idle stack would keep a quarter of a processor busy. */
const EVERY_MS = 5_000;

export function startSweeping(
  functions: Readonly<Record<FunctionName, string>>,
  log: (line: string) => void,
): Sweeping {
  const stop = new AbortController();
  const running = new Set<string>();
  const sweep = async (name: (typeof SWEPT)[number]): Promise<void> => {
    running.add(name);
    try {
      const response = await fetch(`${functions[name]}/sweep`, {
        method: 'POST',
        signal: stop.signal,
      });
      const body = await response.text();
      if (!response.ok) log(`[sweep] ${name} answered ${response.status}: ${body.slice(0, 200)}`);
    } catch (error) {
      if (!stop.signal.aborted) log(`[sweep] ${name} could not be reached: ${String(error)}`);
    } finally {
      running.delete(name);
    }
  };
  const once = async (): Promise<void> => {
    await Promise.all(SWEPT.filter((name) => !running.has(name)).map(sweep));
  };
  // By real time: in a clock that is moved by a month a sweep every five seconds would be a million of them.
  const timer = setInterval(() => void once(), EVERY_MS);
  return {
    running: () => running.size,
    once,
    async close() {
      clearInterval(timer);
      stop.abort();
    },
  };
}
