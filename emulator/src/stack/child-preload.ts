/**
 * Loaded first in every process that the toolkit starts, for what a deployed instance has and a laptop needs: it
 * listens on the loopback interface only (functions-framework has no option for the address), it ends when the stack
 * has ended, however that happened, and no web page reaches it. Its wall clock is the stack's, read before each request
 * is handled. It reports how many requests are not answered yet: a reset of the stack must know of those whose sender
 * has gone, too. It never closes an idle connection, because a delivery that the stack sends at this moment would fail
 * although the program is well, and its repetition would wait on a clock that may stand still. And what it compiles is
 * kept for the next start, which takes half as long.
 */
import { subscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, Server as HttpServer, type ServerResponse } from 'node:http';
import { enableCompileCache, flushCompileCache, registerHooks } from 'node:module';
import { Server } from 'node:net';
import { refusedForeign } from '../web-guard.ts';
import { dateAt, programClock, readStackTime } from './program-clock.ts';

/** Then everything is loaded. At its end alone would be too late for one that is killed. */
const FLUSH_MS = 1_000;

enableCompileCache();

/** How often this process reports to the stack that it is still loading. */
const REPORT_EVERY_MS = 200;
let reportedMs = 0;
const loading = registerHooks({
  resolve(specifier, context, next) {
    if (performance.now() - reportedMs > REPORT_EVERY_MS) {
      reportedMs = performance.now();
      process.send?.('loading');
    }
    return next(specifier, context);
  },
});

const listen = Reflect.get(Server.prototype, 'listen') as (...args: unknown[]) => unknown;

Reflect.set(Server.prototype, 'listen', function onLoopback(this: Server, ...args: unknown[]): unknown {
  const [port, host] = args;
  const isPort = typeof port === 'number' || (typeof port === 'string' && /^\d+$/.test(port));
  setTimeout(flushCompileCache, FLUSH_MS).unref();
  loading.deregister();
  // Node closes after 5 s by default, and announces it; 0 means never, until the stack closes its side.
  if (this instanceof HttpServer) this.keepAliveTimeout = 0;
  const local = isPort && typeof host !== 'string' ? [Number(port), '127.0.0.1', ...args.slice(1)] : args;
  return Reflect.apply(listen, this, local);
});

// A web page must not be able to deliver messages or start sweeps: the programs' ports are as open as the control API's.
const emit = Reflect.get(HttpServer.prototype, 'emit') as (...args: unknown[]) => boolean;

Reflect.set(
  HttpServer.prototype,
  'emit',
  function onlyOurs(this: HttpServer, event: unknown, ...args: unknown[]): boolean {
    const isRequest = event === 'request' || event === 'checkContinue' || event === 'checkExpectation';
    if (!isRequest) return Reflect.apply(emit, this, [event, ...args]);
    const [request, response] = args as [IncomingMessage, ServerResponse];
    if (refusedForeign(request, response)) return true;
    void atStackTime(request, response, () => Reflect.apply(emit, this, [event, ...args]));
    return true;
  },
);

const { LOCAL_STACK_CONTROL: control } = process.env;
const machineNow = Date.now;
const clock =
  control === undefined
    ? undefined
    : programClock(
        () => readStackTime(control),
        () => performance.now(),
      );
if (clock !== undefined) globalThis.Date = dateAt(() => clock.now() ?? machineNow());

/** Begins once the stack's time is known. Where it is not, the sender is to try again. */
async function atStackTime(
  request: IncomingMessage,
  response: ServerResponse,
  begin: () => void,
): Promise<void> {
  try {
    await clock?.sync();
  } catch (error) {
    process.stderr.write(`the time of the local stack is not known: ${String(error)}\n`);
    response.writeHead(503, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: 'try again' }));
    return;
  }
  // Its sender has gone meanwhile: a handler that begins to read only now would wait for ever.
  if (request.destroyed) response.end();
  else begin();
}

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
