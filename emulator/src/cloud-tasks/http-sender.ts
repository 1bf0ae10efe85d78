/**
 * Sends one HTTP request and calls back once with the result: a response, a timeout, or no connection. It never
 * throws, never calls back before it returns, and never retries; a reset of a reused connection is a failed attempt like any
 * other, because whether the target has acted on the request cannot be known.
 */
import { request as httpRequest, type ClientRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Clock } from '../clock.ts';
import { remoteTarget } from '../loopback.ts';
import { sendingAgents } from '../sending-agents.ts';
import type { Headers } from './headers.ts';
import type { Outcome } from './outcome.ts';

type Outgoing = Readonly<{
  url: string;
  method: string;
  headers: Headers;
  body: Buffer;
  /** The response must be complete within this many milliseconds. */
  deadlineMs: number;
}>;

export type HttpSender = Readonly<{
  send(outgoing: Outgoing, done: (outcome: Outcome) => void): void;
  /** Aborts what is in flight, whose `done` is then not called, and closes idle connections. */
  close(): void;
}>;

/**
 * `clock` measures the deadlines: see CloudTasksOptions.deadlineClock. Unless `remoteTargets` is true, a target that is
 * not on this machine is out of reach.
 */
export function createHttpSender(clock: Clock, remoteTargets = false): HttpSender {
  const agents = sendingAgents(remoteTargets);
  const aborts = new Set<() => void>();

  const open = ({ url, method, headers, body }: Outgoing): ClientRequest => {
    const target = new URL(url);
    const refused = remoteTargets ? undefined : remoteTarget(target);
    if (refused !== undefined) throw new Error(refused);
    const secure = target.protocol === 'https:';
    // Set always where a body may be: without it Node would pick the framing by method.
    const length = body.length > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH';
    const all = length ? { ...headers, 'Content-Length': String(body.length) } : headers;
    const options = { method, headers: all, agent: secure ? agents['https:'] : agents['http:'] };
    return secure ? httpsRequest(target, options) : httpRequest(target, options);
  };

  return {
    send(outgoing, done) {
      let request: ClientRequest;
      try {
        request = open(outgoing);
      } catch (error) {
        const outcome: Outcome = { kind: 'unreachable', error: messageOf(error) };
        queueMicrotask(() => done(outcome));
        return;
      }
      let settled = false;
      const settle = (outcome: Outcome | undefined): void => {
        if (settled) return;
        settled = true;
        cancelDeadline();
        aborts.delete(abort);
        if (outcome?.kind !== 'response') request.destroy();
        if (outcome !== undefined) done(outcome);
      };
      const abort = (): void => settle(undefined);
      const cancelDeadline = clock.after(outgoing.deadlineMs, () => settle({ kind: 'timeout' }));
      aborts.add(abort);
      request.on('error', (error) => settle({ kind: 'unreachable', error: messageOf(error) }));
      request.once('close', () => settle({ kind: 'unreachable', error: 'the connection was closed' }));
      request.once('response', (response) => {
        response.on('error', (error) => settle({ kind: 'unreachable', error: messageOf(error) }));
        const { statusCode: status = 0, headers } = response;
        response.once('end', () => settle({ kind: 'response', status, retryAfter: headers['retry-after'] }));
        response.resume();
      });
      request.end(outgoing.body);
    },
    close() {
      for (const abort of aborts) abort();
      agents['http:'].destroy();
      agents['https:'].destroy();
    },
  };
}

/** A refused connection to a name with several addresses is an AggregateError without a message. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
