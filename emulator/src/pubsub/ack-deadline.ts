/** The limits of ack deadlines that a call or a stream names: google/pubsub/v1/pubsub.proto. */
import { invalidArgument } from '../grpc-server.ts';

const MAX_SECONDS = 600;
const MIN_STREAM_SECONDS = 10;

/** Throws INVALID_ARGUMENT outside 0 (a nack) to 600 seconds. */
export function assertDeadline(seconds: number): void {
  assertWithin('ack_deadline_seconds', seconds, 0);
}

/** Throws INVALID_ARGUMENT outside 10 to 600 seconds. */
export function assertStreamDeadline(seconds: number): void {
  assertWithin('stream_ack_deadline_seconds', seconds, MIN_STREAM_SECONDS);
}

function assertWithin(field: string, seconds: number, min: number): void {
  if (seconds < min || seconds > MAX_SECONDS) {
    throw invalidArgument(`Invalid ${field}: ${seconds}. It must be between ${min} and ${MAX_SECONDS}.`);
  }
}
