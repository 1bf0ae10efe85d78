/**
 * What Pub/Sub's answers mean for a message, by the table of faults.
 *
 * Permanent means that this message can never be published and becomes a dead letter. What an operator has to set right
 * at the project (a topic, permissions, credentials, keys) is not the message's fault: it is tried again.
 */
import { PermanentError, textOf, TransientError } from '../errors.ts';
import { verdictOf } from '../faults.ts';

/** What an operator has to correct is not corrected within a second. */
const DEPLOYMENT_PAUSE_MS = 10_000;

/** Statuses that are not in the table, and errors without one (no credentials, no network), are transient. */
export function publishError(error: unknown, topic: string): PermanentError | TransientError {
  if (error instanceof PermanentError || error instanceof TransientError) return error;
  const { fault, code } = verdictOf('pubsub', error);
  const text = `publish to ${topic}: ${textOf(error)}`;
  if (fault === 'message') return new PermanentError(code, text, { cause: error });
  const pause = fault === 'deployment' ? { retryAfterMs: DEPLOYMENT_PAUSE_MS } : {};
  return new TransientError(code, text, { cause: error, ...pause });
}
