/**
 * Ack IDs: one for each delivery. A well-formed ID of a delivery that is over (or of an earlier run of the
 * server) is stale and ignored, as on an ordinary subscription of the service; anything else is malformed.
 * An exactly-once subscription names either kind in its answer instead.
 */
import { invalidArgument } from '../grpc-server.ts';

/** Run of the server, subscription, delivery: each in base 36. */
const FORM = /^[0-9a-z]{6,16}-[0-9a-z]{1,11}-[0-9a-z]{1,11}$/;

/** The service's limit on a request to acknowledge or to move deadlines. */
const MAX_IDS_BYTES = 524_288;

export function ackIds(run: string, subscription: number): () => string {
  const prefix = `${run}-${subscription.toString(36)}-`;
  let count = 0;
  return () => prefix + (count++).toString(36);
}

/**
 * Throws INVALID_ARGUMENT for none, for too many in one request, and for a malformed one, which it names; the last
 * not on an exactly-once subscription, where the rest of the request is carried out.
 */
export function assertAckIds(ids: readonly string[], exactlyOnce: boolean): void {
  if (ids.length === 0) throw invalidArgument('No ack ids specified.');
  let bytes = 0;
  for (const id of ids) {
    if (!exactlyOnce && !FORM.test(id)) {
      throw invalidArgument(`You have passed an invalid ack ID to the service (ack_id=${id.slice(0, 128)}).`);
    }
    bytes += id.length;
  }
  if (bytes > MAX_IDS_BYTES) {
    throw invalidArgument(`Request payload size exceeds the limit: ${MAX_IDS_BYTES} bytes.`);
  }
}
