/**
 * Loaded first in every process that the stack starts. Two things that a deployed instance has and a laptop needs:
 * it listens on the loopback interface only (functions-framework has no option for the address), and it ends when
 * the stack has ended, however that happened.
 */
import { Server } from 'node:net';

const listen = Reflect.get(Server.prototype, 'listen') as (...args: unknown[]) => unknown;

Reflect.set(Server.prototype, 'listen', function onLoopback(this: Server, ...args: unknown[]): unknown {
  const [port, host] = args;
  const isPort = typeof port === 'number' || (typeof port === 'string' && /^\d+$/.test(port));
  const local = isPort && typeof host !== 'string' ? [Number(port), '127.0.0.1', ...args.slice(1)] : args;
  return Reflect.apply(listen, this, local);
});

process.on('disconnect', () => process.exit(0));
process.channel?.unref();
