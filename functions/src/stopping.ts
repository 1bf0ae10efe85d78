/**
 * What becomes of requests when the platform takes the instance away: SIGTERM, and ten seconds later SIGKILL
 * (https://cloud.google.com/run/docs/container-contract#instance-shutdown).
 *
 * From the signal on nothing new is taken. What is in flight has six seconds to finish and be answered. What has not
 * finished then is stopped: it is answered with 503, and has two seconds to release its claim or its lease, so that the
 * next delivery of the message runs at once and not after the lease. After that the process ends whatever is left; that
 * is a crash as any other, and its messages come again.
 *
 * The framework's own listeners answer the newest request with 500 and end the process with the signal, so they are
 * taken off as they are put on. Requests are counted from their first byte to their last by Node's own channel.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Handler, Log } from 'pubsub-guarantees';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** Long enough for a publish, which is what a delivery takes longest for. */
const FINISH_MS = 6_000;
/** After that, and not after the signal: a process that got no time meanwhile has the whole of it to release what it holds. */
const RELEASE_MS = 2_000;

export type Stopping = Readonly<{
  /** Aborted when what is in flight has had its time. */
  stop: AbortSignal;
  /** Whether the signal has come: a request from now on belongs to another instance. */
  hasBegun(): boolean;
  /** What is to be released when what is in flight has had its time; the process waits for it as for a request. */
  whenStopped(work: () => Promise<void>): void;
  /** Counts runs of the handler that go on after their request was answered. */
  counted(handler: Handler): Handler;
}>;

/** For the whole process, from now on. */
export function stopOnSignal(log: Log): Stopping {
  const stop = new AbortController();
  const busy = new Set<object>();
  const works: (() => Promise<void>)[] = [];
  let server: Server | undefined;
  let hasBegun = false;

  const endWhenIdle = (): void => {
    if (hasBegun && busy.size === 0) process.exit(0);
  };
  const done = (what: object): void => {
    busy.delete(what);
    endWhenIdle();
  };
  const finished = async (work: () => Promise<void>): Promise<void> => {
    busy.add(work);
    try {
      await work();
    } catch (error) {
      log.warn('work before the end failed', { error: String(error) });
    } finally {
      done(work);
    }
  };
  const begin = (): void => {
    if (hasBegun) return;
    hasBegun = true;
    server?.close();
    server?.closeIdleConnections();
    setTimeout(() => {
      stop.abort();
      for (const work of works) void finished(work);
      setTimeout(() => {
        log.error('did not stop in time', { event: 'stopped_late', inFlight: busy.size });
        process.exit(1);
      }, RELEASE_MS);
    }, FINISH_MS);
    endWhenIdle();
  };

  for (const signal of SIGNALS) process.on(signal, begin);
  process.on('newListener', (name: string, listener: () => void) => {
    // The listener is put on only after this event.
    if (SIGNALS.some((signal) => signal === name)) queueMicrotask(() => process.off(name, listener));
  });
  subscribe('http.server.request.start', (event) => {
    const started = event as Readonly<{ request: IncomingMessage; response: ServerResponse; server: Server }>;
    server = started.server;
    busy.add(started.response);
    started.response.once('close', () => done(started.response));
    if (hasBegun) started.response.setHeader('Connection', 'close');
  });

  return {
    stop: stop.signal,
    hasBegun: () => hasBegun,
    whenStopped: (work) => void works.push(work),
    counted: (handler) => async (message, context) => {
      const run = {};
      busy.add(run);
      try {
        return await handler(message, context);
      } finally {
        done(run);
      }
    },
  };
}
