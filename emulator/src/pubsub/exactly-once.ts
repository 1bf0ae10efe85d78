/**
 * The answer of an exactly-once subscription to ack IDs that are no longer (or never were) those of a valid lease.
 * What is valid in the same request has been carried out; the invalid IDs are named in a google.rpc.ErrorInfo, which
 * the client libraries read: https://cloud.google.com/pubsub/docs/exactly-once-delivery
 *
 * gRPC has no answer that is half an error, and clients count an ID that is not named as failed when the call failed,
 * although its lease is settled: as with the service, the reply to their next attempt says that the ID is no longer valid.
 */
import { Metadata, status } from '@grpc/grpc-js';
import { DETAILS, field, statusDetails } from '../error-details.ts';
import { StatusError } from '../grpc-server.ts';

const MESSAGE =
  'Some acknowledgement ids in the request were invalid. This could be because the acknowledgement ids have expired or the acknowledgement ids were malformed.';
const INVALID = 'PERMANENT_FAILURE_INVALID_ACK_ID';
/** HTTP/2 peers refuse headers of more than 64 KiB, of which base64 takes a third: further IDs go unnamed. */
const MAX_DETAIL_BYTES = 32_768;

class AckIdError extends StatusError {
  readonly metadata = new Metadata();
  constructor(ids: readonly string[]) {
    super(status.INVALID_ARGUMENT, MESSAGE);
    this.name = 'AckIdError';
    this.metadata.set(DETAILS, details(ids));
  }
}

/** Throws INVALID_ARGUMENT with details unless there are none. */
export function assertAllValid(invalidAckIds: readonly string[]): void {
  if (invalidAckIds.length > 0) throw new AckIdError(invalidAckIds);
}

/** With a google.rpc.ErrorInfo (google/rpc/error_details.proto). */
function details(ids: readonly string[]): Buffer {
  const entries: Buffer[] = [];
  let bytes = 0;
  for (const id of ids) {
    const entry = field(3, [field(1, id), field(2, INVALID)]);
    bytes += entry.length;
    if (bytes > MAX_DETAIL_BYTES) break;
    entries.push(entry);
  }
  const info = [field(1, 'EXACTLY_ONCE_ACKID_FAILURE'), field(2, 'pubsub.googleapis.com'), ...entries];
  return statusDetails(status.INVALID_ARGUMENT, MESSAGE, 'type.googleapis.com/google.rpc.ErrorInfo', info);
}
