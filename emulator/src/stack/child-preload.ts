/**
 * Loaded first in every process that the toolkit starts. Two things that a deployed instance has and a laptop needs:
 * it listens on the loopback interface only (functions-framework has no option for the address), and it ends when
 * the stack has ended, however that happened. And it tells how many requests are not answered yet: who resets the stack
 * must know of those whose sender has gone, too.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { Server } from 'node:net';

const listen = Reflect.get(Server.prototype, 'listen') as (...args: unknown[]) => unknown;

Reflect.set(Server.prototype, 'listen', function onLoopback(this: Server, ...args: unknown[]): unknown {
  const [port, host] = args;
  const isPort = typeof port === 'number' || (typeof port === 'string' && /^\d+$/.test(port));
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
