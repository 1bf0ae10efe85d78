/**
 * Loaded first in every process that the toolkit starts. Two things that a deployed instance has and a laptop needs:
 * it listens on the loopback interface only (functions-framework has no option for the address), and it ends when
 * the stack has ended, however that happened. It tells how many requests are not answered yet: who resets the stack must
 * know of those whose sender has gone, too. And what it compiles is kept for the next start, which takes half as long.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { enableCompileCache, flushCompileCache } from 'node:module';
import { Server } from 'node:net';

/** Then everything is loaded. At its end alone would be too late for one that is killed. */
const FLUSH_MS = 1_000;

enableCompileCache();

const listen = Reflect.get(Server.prototype, 'listen') as (...args: unknown[]) => unknown;

Reflect.set(Server.prototype, 'listen', function onLoopback(this: Server, ...args: unknown[]): unknown {
  const [port, host] = args;
  const isPort = typeof port === 'number' || (typeof port === 'string' && /^\d+$/.test(port));
  setTimeout(flushCompileCache, FLUSH_MS).unref();
  const local = isPort && typeof host !== 'string' ? [Number(port), '127.0.0.1', ...args.slice(1)] : args;
  return Reflect.apply(listen, this, local);
});

const open = new Set<ServerResponse>();

subscribe('http.server.request.start', (message) => {
  const { response } = message as Readonly<{ response: ServerResponse }>;
  const end = Reflect.get(response, 'end') as (...args: unknown[]) => unknown;
  open.add(response);
  // Not its event: there is none when the sender does not wait any more.
  Reflect.set(response, 'end', (...args: unknown[]): unknown => {
    open.delete(response);
    return Reflect.apply(end, response, args);
  });
});

process.on('message', (message) => {
  if (message === 'inFlight') process.send?.(open.size);
});
process.on('disconnect', () => process.exit(0));
process.channel?.unref();
