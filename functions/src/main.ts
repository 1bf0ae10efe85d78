/**
 * The functions `dedup`, `delay`, `fifo`, `pipeline` and `saga`, on functions-framework. A process serves one of them.
 *
 * They are HTTP functions that read the body themselves: the framework's own CloudEvent conversion drops the ordering
 * key, the subscription, the delivery attempt, and messages without data.
 *
 * A crash at any point leaves the message unacknowledged, so that Pub/Sub delivers it again. An end that is announced is
 * no crash: stopping.ts.
 */
import { http, type Request, type Response } from '@google-cloud/functions-framework';
import { type Clock, ConfigError, jsonLog, type Log, systemClock } from 'pubsub-guarantees';
import { untilStopped } from 'pubsub-guarantees/publish';
import {
  type BytesInFlight,
  bytesInFlight,
  httpEndpoint,
  type HttpRequest,
  type HttpResponse,
  payloadsThatFit,
} from 'pubsub-guarantees/receive';
import { connect } from './clients.ts';
import { type Config, readConfig } from './config.ts';
import { pipeline } from './pipelines.ts';
import { answerCreated } from './outbox-endpoint.ts';
import { bodyOf, headersOf, keepBodiesRaw, MAX_BODY_BYTES } from './raw-body.ts';
import { stopOnSignal } from './stopping.ts';
import { runSweeps, withinLimit } from './sweeping.ts';
import { answerWake } from './wake-endpoint.ts';
import { checkWindowsAtStart } from './windows.ts';

/** The framework takes the target as a variable or as a flag. */
function targetOf(environment: NodeJS.ProcessEnv, flags: readonly string[]): string | undefined {
  const flag = flags.find((argument) => argument.startsWith('--target='));
  return flag?.slice('--target='.length) ?? environment['FUNCTION_TARGET'];
}

/** Pub/Sub delivers it again, to an instance that stays. */
const STOPPING: HttpResponse = { status: 503, body: JSON.stringify({ error: 'this instance is stopping' }) };
/** Pub/Sub slows down, and delivers it again. */
const FULL: HttpResponse = { status: 429, body: JSON.stringify({ error: 'too many bytes are in flight' }) };

async function register(config: Config, clock: Clock): Promise<void> {
  const log = jsonLog((line) => console.log(line), {
    projectId: config.project,
    labels: { consumer: config.consumer, function: config.name },
    debug: config.debug,
  });
  const { stop, counted, hasBegun, whenStopped } = stopOnSignal(log);
  const connected = await connect(config, clock, log);
  const room = bytesInFlight({ limit: config.maxBytesInFlight, clock, log, capability: 'delivery' });
  const { publisher, payloads } = connected;
  const ports = {
    ...connected,
    publisher: untilStopped(publisher, stop),
    payloads: payloads && payloadsThatFit(payloads, room),
  };
  const { handler, sweeps, wake, stop: releaseStreams } = pipeline(config, ports);
  if (releaseStreams !== undefined) whenStopped(releaseStreams);
  const isSwept = Object.keys(sweeps).length > 0;
  const endpoint = httpEndpoint(counted(checkWindowsAtStart(config, ports)(handler)), {
    consumer: config.consumer,
    ...(config.source !== undefined && { source: config.source }),
    clock,
    log,
    handlerTimeout: config.timeout,
    publisher: ports.publisher,
    deadLetterTopic: config.deadLetterTopic,
    stop,
  });
  const wakeEndpoint =
    wake &&
    ((request: HttpRequest): Promise<HttpResponse> =>
      answerWake(
        request,
        config.consumer,
        (stream) => withinLimit(config, clock, log, (context) => wake(stream, context), stop),
        log,
      ));
  const { outbox } = ports;
  const outboxEndpoint =
    outbox && ((request: HttpRequest): Promise<HttpResponse> => answerCreated(request, outbox.created, log));
  const endpoints = new Map([
    ['/wake', wakeEndpoint],
    ['/outbox', outboxEndpoint],
  ]);
  const answer = (request: Request): Promise<HttpResponse> => {
    const path = request.method === 'POST' ? request.path : '/';
    if (isSwept && path === '/sweep') {
      return answerSweep(() => runSweeps(sweeps, config, clock, log, stop), log);
    }
    const chosen = endpoints.get(path) ?? endpoint;
    return room.during(() => answerBody({ room, log }, chosen, request));
  };
  http(config.name, async (request: Request, response: Response) => {
    const { status, body } = hasBegun() ? STOPPING : await answer(request);
    // Once it has answered the process may get no time any more.
    await ports.wakes?.settled();
    response.status(status).type('json').send(body);
  });
}

async function answerBody(
  { room, log }: Readonly<{ room: BytesInFlight; log: Log }>,
  endpoint: (request: HttpRequest) => Promise<HttpResponse>,
  request: Request,
): Promise<HttpResponse> {
  let rawBody: Awaited<ReturnType<typeof bodyOf>>;
  try {
    rawBody = await bodyOf(request, room.take);
  } catch (error) {
    log.warn('a request ended early', { error: error instanceof Error ? error.message : String(error) });
    return { status: 400, body: JSON.stringify({ error: 'the request ended before its body' }) };
  }
  if (rawBody === 'no room') return FULL;
  if (rawBody === undefined) {
    log.error('a body is larger than any delivery', { acceptedBytes: MAX_BODY_BYTES });
    return { status: 413, body: JSON.stringify({ error: `accepted: at most ${MAX_BODY_BYTES} bytes` }) };
  }
  return endpoint({ method: request.method, headers: headersOf(request), rawBody });
}

/** What a sweep did not get to stays due: the next one finds it. */
async function answerSweep(sweep: () => Promise<object>, log: Log): Promise<HttpResponse> {
  try {
    return { status: 200, body: JSON.stringify(await sweep()) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log.error('the sweep failed', { error: message });
    return { status: 503, body: JSON.stringify({ error: message }) };
  }
}

keepBodiesRaw();
try {
  await register(readConfig(process.env, targetOf(process.env, process.argv)), systemClock());
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  console.error(`cannot start: ${error.message}`);
  process.exit(1);
}
