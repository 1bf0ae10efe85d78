/**
 * Notifications of Postgres on a connection of its own, for as long as they are wanted. A connection that breaks is made
 * anew with growing pauses, and calls the caller back each time: what was sent meanwhile is lost.
 *
 * LISTEN belongs to a session, so a pooler in transaction mode cannot carry it: the connection goes to the server itself.
 */
import { type Growth, pauseAfter } from '../async/backoff.ts';
import { type Clock, sleep } from '../clock.ts';
import { ConfigError, textOf } from '../errors.ts';
import type { Log } from '../log.ts';

/** A connection that is not a pool's: `new Client(options)` of `pg`. */
export type ListeningClient = Readonly<{
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<unknown>;
  on(event: 'notification', listener: (message: Readonly<{ payload?: string | undefined }>) => void): unknown;
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown;
}>;

const PAUSES: Growth = { minMs: 200, maxMs: 30_000 };

export type ListenPorts = Readonly<{
  open: () => ListeningClient;
  clock: Clock;
  log: Log;
  random: () => number;
}>;

/**
 * Calls `notified` for each notification, and without a payload after each connection. Resolves when `signal` is
 * aborted.
 */
export async function listening(
  { open, clock, log, random }: ListenPorts,
  channel: string,
  notified: (payload?: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const client = open();
    if (typeof client?.connect !== 'function') {
      throw new ConfigError('INVALID_OPTION', 'listen answers no client; accepted: new Client() of pg');
    }
    const broken = new Promise<void>((resolve) => {
      client.on('error', () => resolve());
      client.on('end', () => resolve());
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      client.on('notification', ({ payload }) => notified(payload));
      await client.connect();
      await client.query(`listen "${channel}"`);
      failures = 0;
      notified();
      await broken;
    } catch (error) {
      log.warn('notifications do not arrive; jobs are found by polling', {
        event: 'job_listener_broken',
        error: textOf(error),
      });
    }
    await client.end().catch(() => {});
    failures += 1;
    await sleep(clock, pauseAfter(failures, PAUSES) * (0.5 + random()), signal);
  }
}
