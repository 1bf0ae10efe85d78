/**
 * What the service's status codes mean for a message. One table; the odd rows say why.
 *
 * Permanent means that this message can never be published and becomes a dead letter. What somebody has to set right
 * at the project (permissions, credentials, keys) is not the message's fault: it is tried again.
 */
import { PermanentError, textOf, TransientError } from '../errors.ts';
import { REFUSED } from './send-all.ts';

/** https://grpc.io/docs/guides/status-codes/ */
const PERMANENT: ReadonlyMap<number, string> = new Map([
  // A limit, a schema of the topic, a malformed name.
  [3, REFUSED],
  // The topic does not exist. Creating it later is possible, but a deleted topic would hold its messages for ever.
  [5, 'TOPIC_NOT_FOUND'],
  [11, REFUSED],
]);

const TRANSIENT: ReadonlyMap<number, string> = new Map([
  [4, 'PUBLISH_TIMEOUT'],
  // IAM changes take minutes to arrive everywhere (https://cloud.google.com/iam/docs/access-change-propagation).
  [7, 'PUBLISH_DENIED'],
  [8, 'PUBLISH_QUOTA'],
  // Among others an encryption key that is disabled.
  [9, 'PUBLISH_PRECONDITION'],
  [14, 'PUBSUB_UNAVAILABLE'],
  [16, 'PUBLISH_DENIED'],
]);

/** Codes that are not in the table, and errors without one (no credentials, no network), are transient. */
export function publishError(error: unknown, topic: string): PermanentError | TransientError {
  if (error instanceof PermanentError || error instanceof TransientError) return error;
  const status = statusOf(error);
  const text = `publish to ${topic}: ${textOf(error)}`;
  const permanent = PERMANENT.get(status);
  if (permanent !== undefined) return new PermanentError(permanent, text, { cause: error });
  return new TransientError(TRANSIENT.get(status) ?? 'PUBLISH_FAILED', text, { cause: error });
}

function statusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('code' in error)) return NaN;
  return typeof error.code === 'number' ? error.code : NaN;
}
