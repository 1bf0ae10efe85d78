/** A delivery that is not settled yet, and who has it. */
import type { Entry, Room } from './backlog.ts';
import type { Alarm } from './deadlines.ts';
import type { ReceivedMessage } from './wire.ts';

export type Lease = Readonly<{
  ackId: string;
  entry: Entry;
  consumer: Consumer;
  /** As the subscriber sees it: 0 without a dead-letter policy. */
  deliveryAttempt: number;
  deadline: Alarm;
}>;

export type LeaseEnd = 'acked' | 'failed' | 'revoked';

/** A stream, a waiting pull, or the push to an endpoint. */
export type Consumer = Readonly<{
  ackDeadlineSeconds(): number;
  /** Undefined while it takes nothing. */
  room(): Room | undefined;
  deliver(leases: readonly Lease[]): void;
  /** The lease is over, for whatever reason. */
  released(lease: Lease, end: LeaseEnd): void;
}>;

export const received = ({ ackId, entry, deliveryAttempt }: Lease): ReceivedMessage => ({
  ackId,
  message: entry.message,
  deliveryAttempt,
});
