/**
 * Whose fault a failure is, in one table for all that Pub/Sub, Cloud Tasks, Firestore and HTTP answer.
 *
 * Only the message's own faults count as its attempts or make it a dead letter. For every other fault the message waits:
 * it is tried again with growing pauses, the failure is logged and counted under its fault, and it stops by itself once
 * the cause is gone. A status that is not in a table is nothing that is known of the message, so it is not the message's.
 */

export type Fault =
  /** Its content or size, or what a handler says of it: the same message fails everywhere. */
  | 'message'
  /** What it is sent to does not answer, or takes no more for the moment. It comes back by itself. */
  | 'target'
  /**
   * A name, a permission, a key or a setting is wrong. An operator corrects it, and the messages must still be there
   * then.
   */
  | 'deployment'
  /** A store that holds the library's records does not answer. */
  | 'store'
  /** Another process has the message, or this one is ending. */
  | 'process';

export type Verdict = Readonly<{ fault: Fault; code: string; text: string }>;
type Verdicts = Readonly<Record<number, Verdict>>;

const verdict = (fault: Fault, code: string, text: string): Verdict => ({ fault, code, text });

/** By gRPC status: https://grpc.io/docs/guides/status-codes/ */
const PUBSUB: Verdicts = {
  // A limit, a schema of the topic, a malformed name.
  3: verdict('message', 'PUBLISH_REFUSED', 'the topic does not take this message'),
  4: verdict('target', 'PUBLISH_TIMEOUT', 'no answer in time'),
  // A topic that Terraform makes anew is away for a minute; one that was deleted is an alert, not the message's end.
  5: verdict('deployment', 'TOPIC_NOT_FOUND', 'the topic does not exist'),
  // IAM changes take minutes to arrive everywhere (https://cloud.google.com/iam/docs/access-change-propagation).
  7: verdict('deployment', 'PUBLISH_DENIED', 'the account may not publish'),
  8: verdict('target', 'PUBLISH_QUOTA', 'over a quota'),
  // Among others an encryption key that is disabled.
  9: verdict('deployment', 'PUBLISH_PRECONDITION', 'the topic cannot take messages'),
  11: verdict('message', 'PUBLISH_REFUSED', 'the topic does not take this message'),
  12: verdict('deployment', 'PUBLISH_FAILED', 'is not served at this address'),
  14: verdict('target', 'PUBSUB_UNAVAILABLE', 'not reachable'),
  16: verdict('deployment', 'PUBLISH_DENIED', 'no valid credentials'),
};

const CLOUD_TASKS: Verdicts = {
  // The task itself: too large, or a form that the service never takes.
  3: verdict('message', 'TASK_REFUSED', 'does not take this task'),
  4: verdict('target', 'TASK_QUEUE_UNAVAILABLE', 'did not answer in time'),
  5: verdict('deployment', 'TASK_QUEUE_MISSING', 'does not exist, or was created a moment ago'),
  7: verdict(
    'deployment',
    'TASK_QUEUE_FORBIDDEN',
    'may not be used by this service account (cloudtasks.enqueuer, and actAs for a token)',
  ),
  8: verdict('target', 'TASK_QUEUE_UNAVAILABLE', 'is over its rate or quota'),
  9: verdict(
    'deployment',
    'TASK_QUEUE_NOT_READY',
    'cannot take tasks: disabled, or without an App Engine application',
  ),
  11: verdict('message', 'TASK_REFUSED', 'does not take this task'),
  12: verdict('deployment', 'TASK_QUEUE_NOT_READY', 'is not served at this address'),
  14: verdict('target', 'TASK_QUEUE_UNAVAILABLE', 'is not reachable'),
  16: verdict('deployment', 'TASK_QUEUE_FORBIDDEN', 'was called without valid credentials'),
};

const unknownStore = (text: string): Verdict => verdict('store', 'STORE_UNAVAILABLE', text);

/** The text is what an operator looks at first. Nothing that the store answers is about a message. */
const FIRESTORE: Verdicts = {
  3: unknownStore('the request is not understood'),
  5: unknownStore('the database does not exist'),
  7: unknownStore('permission denied: the service account wants roles/datastore.user'),
  8: unknownStore('resource exhausted: a quota, or a hot range of keys'),
  12: unknownStore('not implemented by this server'),
  14: unknownStore('no connection'),
  16: unknownStore('not authenticated'),
};

export const VERDICTS = {
  pubsub: { known: PUBSUB, otherwise: verdict('target', 'PUBLISH_FAILED', 'failed') },
  cloudTasks: { known: CLOUD_TASKS, otherwise: verdict('target', 'TASK_QUEUE_UNAVAILABLE', 'failed') },
  firestore: { known: FIRESTORE, otherwise: unknownStore('') },
} as const satisfies Readonly<Record<string, Readonly<{ known: Verdicts; otherwise: Verdict }>>>;

/** What the answer of a service means. */
export function verdictOf(service: keyof typeof VERDICTS, error: unknown): Verdict {
  const { known, otherwise } = VERDICTS[service];
  return known[statusOf(error)] ?? otherwise;
}

/** Codes of the library's own, beside those of the tables above. A code that is not here is the message's. */
const OWN: Readonly<Record<string, Fault>> = {
  DELIVERY_ABORTED: 'process',
  DELIVERY_STOPPED: 'process',
  FIRING_ELSEWHERE: 'process',
  IN_PROGRESS_ELSEWHERE: 'process',
  LEASE_LOST: 'process',
  OUTBOX_PENDING: 'process',
  PUBLISHER_CLOSED: 'process',
  SAGA_STEP_BUSY: 'process',
  STOPPING: 'process',
  STREAM_BUSY: 'process',
  DUE_TIME_NOT_REACHED: 'deployment',
  UNRECOGNISED_CLAIM: 'deployment',
  LEDGER_MISSING: 'deployment',
  PAYLOAD_STORE_MISSING: 'deployment',
  SAGA_STEP_UNKNOWN: 'deployment',
  SAGA_VERSION_UNKNOWN: 'deployment',
  TOPIC_NOT_ALLOWED: 'deployment',
  UNREADABLE_COUNTER: 'deployment',
  UNREADABLE_ENTRY: 'deployment',
  UNREADABLE_ROW: 'deployment',
  UNREADABLE_SAGA: 'deployment',
  UNREADABLE_STATE: 'deployment',
  UNREADABLE_STEP: 'deployment',
  UNREADABLE_TRACE: 'deployment',
  OUTBOX_UNPUBLISHED: 'target',
  PUBLISH_UNCONFIRMED: 'target',
  TIMED_OUT: 'target',
  SEQUENCE_CONTENTION: 'store',
  TRANSACTION_CONTENTION: 'store',
};

const OF_CODE: ReadonlyMap<string, Fault> = new Map([
  ...Object.values(VERDICTS).flatMap(({ known, otherwise }) =>
    [...Object.values(known), otherwise].map(({ code, fault }): [string, Fault] => [code, fault]),
  ),
  ...Object.entries(OWN),
  // The default of its table, where nothing is known, and 12 is in it for its text alone.
  ['PUBLISH_FAILED', 'target'],
]);

export const faultOfCode = (code: string): Fault | undefined => OF_CODE.get(code);

/**
 * What a handler lets through of a client that it called. Only what cannot be about the message: a deadline, a missing
 * document or an argument that is refused may well be.
 */
const BY_STATUS: Readonly<Record<number, Fault>> = { 7: 'deployment', 14: 'target', 16: 'deployment' };

export const faultOfStatus = (error: unknown): Fault | undefined => BY_STATUS[statusOf(error)];

/** https://cloud.google.com/apis/design/errors#handling_errors; 502 comes from proxies in between. */
const OF_HTTP: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  408: 4,
  409: 10,
  429: 8,
  499: 1,
  500: 13,
  501: 12,
  502: 14,
  503: 14,
  504: 4,
};

/** https://nodejs.org/api/errors.html#common-system-errors */
const NETWORK: ReadonlySet<unknown> = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/**
 * The gRPC status of an error, whether it came over gRPC, as a number or a text of HTTP (as Google's REST fallback and
 * its authentication library have it), or as a failure of the network. NaN: it has none. Texts are never looked at.
 */
export function statusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null) return NaN;
  const { code, status, response } = error as Readonly<Record<string, unknown>>;
  const inResponse = (response as Readonly<{ status?: unknown }> | null | undefined)?.status;
  for (const candidate of [code, status, inResponse]) {
    if (NETWORK.has(candidate)) return 14;
    const number = typeof candidate === 'string' && /^\d{3}$/.test(candidate) ? Number(candidate) : candidate;
    if (typeof number !== 'number') continue;
    if (number >= 0 && number <= 16) return number;
    const mapped = OF_HTTP[number];
    if (mapped !== undefined) return mapped;
  }
  return NaN;
}
