/**
 * Which headers a task keeps, which the service sets, and what it says to the target about an attempt.
 * Nothing that a caller writes can pass for what the service says: the reserved families are removed.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { invalidArgument } from '../grpc-server.ts';

export type Headers = Readonly<Record<string, string>>;
export type TargetKind = 'http' | 'appEngine';

/** As recorded from the service. */
const HTTP_AGENT = 'Google-Cloud-Tasks';
export const APP_ENGINE_AGENT = 'AppEngine-Google; (+http://code.google.com/appengine)';

/** "Google use only" (API reference, headers); the service sets the third family itself. */
const RESERVED = /^x-(?:google|appengine|cloudtasks)-/i;

/**
 * "Ignored or replaced" (API reference): Host and Content-Length are computed. The rest governs a connection that
 * belongs to the service, and would break the framing of the request.
 */
const REPLACED = new Set([
  'host',
  'content-length',
  'connection',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** "The size of the headers must be less than 80KB" (API reference, HttpRequest.headers). */
const MAX_HTTP_HEADER_BYTES = 80 * 1024;

/**
 * The headers as a task keeps and shows them, recorded from the service: an HTTP task gets the User-Agent alone (its
 * Content-Type is never made up), an App Engine task with a body also Content-Length and a default Content-Type.
 * Throws INVALID_ARGUMENT for a header that cannot be sent.
 */
export function storedHeaders(kind: TargetKind, given: Headers, bodyBytes: number): Headers {
  const kept: Record<string, string> = {};
  const seen = new Set<string>();
  let agent = '';
  let bytes = 0;
  for (const [name, value] of Object.entries(given)) {
    checkHeader(name, value);
    const lower = name.toLowerCase();
    if (seen.has(lower)) throw invalidArgument(`The header ${name} is given twice, in different case.`);
    seen.add(lower);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (lower === 'user-agent') agent = value;
    else if (!REPLACED.has(lower) && !RESERVED.test(name)) kept[name] = value;
  }
  if (kind === 'http') {
    if (bytes >= MAX_HTTP_HEADER_BYTES) {
      throw invalidArgument(`HttpRequest.headers has ${bytes} bytes: less than 80KB is accepted.`);
    }
    return { ...kept, 'User-Agent': HTTP_AGENT };
  }
  if (bodyBytes > 0) {
    kept['Content-Length'] = String(bodyBytes);
    if (!seen.has('content-type')) kept['Content-Type'] = 'application/octet-stream';
  }
  // "Cloud Tasks will append … to the modified User-Agent" (API reference, AppEngineHttpRequest.headers).
  return { ...kept, 'User-Agent': agent === '' ? APP_ENGINE_AGENT : `${agent} ${APP_ENGINE_AGENT}` };
}

export type AttemptFacts = Readonly<{
  kind: TargetKind;
  queueId: string;
  taskId: string;
  retryCount: number;
  executionCount: number;
  scheduleMicros: number;
  /** Of the attempt before this one; absent at the first. */
  previous: Readonly<{ response: number; reason: string }> | undefined;
}>;

/** What the service adds to the request of one attempt. From the second on it names the previous outcome. */
export function attemptHeaders(facts: AttemptFacts): Headers {
  const prefix = facts.kind === 'http' ? 'X-CloudTasks-' : 'X-AppEngine-';
  const { scheduleMicros, previous } = facts;
  const headers: Record<string, string> = {
    [`${prefix}QueueName`]: facts.queueId,
    [`${prefix}TaskName`]: facts.taskId,
    [`${prefix}TaskRetryCount`]: String(facts.retryCount),
    [`${prefix}TaskExecutionCount`]: String(facts.executionCount),
    [`${prefix}TaskETA`]: `${Math.floor(scheduleMicros / 1e6)}.${String(scheduleMicros % 1e6).padStart(6, '0')}`,
  };
  if (previous !== undefined) {
    headers[`${prefix}TaskPreviousResponse`] = String(previous.response);
    headers[`${prefix}TaskRetryReason`] = previous.reason;
  }
  return headers;
}

function checkHeader(name: string, value: string): void {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw invalidArgument(
      `The header ${JSON.stringify(name)} with the value ${JSON.stringify(value)} cannot be sent over HTTP: names are tokens, values have no control characters and nothing beyond Latin-1.`,
    );
  }
}
