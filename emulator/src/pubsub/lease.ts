/** A delivery that is not settled yet, and the client that has it. */
import type { Move } from '../clock.ts';
import type { Entry, Room } from './backlog.ts';
import type { Alarm } from './deadlines.ts';
import type { ReceivedMessage } from './wire.ts';

export type Lease = {
  readonly ackId: string;
  readonly entry: Entry;
  readonly consumer: Consumer;
  /** As the subscriber sees it: 0 without a dead-letter policy. */
  readonly deliveryAttempt: number;
  readonly deadline: Alarm;
  /** When it was given or last extended: by the clock, and in real time. */
  since: Readonly<{ clockMs: number; realMs: number }>;
  /** The move of the clock during which it was given. */
  readonly givenIn: Move | undefined;
};

export type LeaseEnd = 'acked' | 'failed' | 'revoked';

/** A stream, a waiting pull, or the push to an endpoint. */
export type Consumer = Readonly<{
  kind: 'stream' | 'pull' | 'push';
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
