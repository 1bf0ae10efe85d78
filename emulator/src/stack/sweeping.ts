/**
 * Does what Cloud Scheduler does in production, only more often: calls the sweep of every function that keeps an
 * order. One call of each at a time; a function that is down is tried again at the next turn.
 */
import type { StackAddresses } from './stack.ts';
import { SWEPT } from './topology.ts';

export type Sweeping = Readonly<{ close(): Promise<void> }>;

const EVERY_MS = 2_000;

export function startSweeping(
  addresses: Pick<StackAddresses, 'functions'>,
  log: (line: string) => void,
): Sweeping {
  const stop = new AbortController();
  const running = new Set<string>();
  const sweep = async (name: (typeof SWEPT)[number]): Promise<void> => {
    running.add(name);
    try {
      const response = await fetch(`${addresses.functions[name]}/sweep`, {
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
  const timer = setInterval(() => {
    for (const name of SWEPT) if (!running.has(name)) void sweep(name);
  }, EVERY_MS);
  return {
    async close() {
      clearInterval(timer);
      stop.abort();
    },
  };
}
