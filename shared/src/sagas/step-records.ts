/**
 * The port behind participants: what became of one step of one saga. The record is the identity of the step's effect, so
 * whatever message asks again gets the same answer and does nothing.
 *
 * Where a step's effect is a write of the same store, effect, record and reply are one commit.
 */
import { hashOf } from '../hash.ts';

export type StepRef = Readonly<{
  /** Of the participant. */
  consumer: string;
  saga: string;
  id: string;
  step: string;
}>;

export type StepRecordState =
  /** A call to another service is being made, or was made by a process that died. */
  | 'started'
  | 'done'
  | 'refused'
  /** A tombstone: the step was undone or withdrawn before it came, and never will have an effect. */
  | 'cancelled'
  /** A call that takes the effect back is being made, or was made by a process that died. */
  | 'undoing'
  | 'undone';

export type StepRecord = Readonly<{
  ref: StepRef;
  state: StepRecordState;
  /** JSON; empty where the answer had none. */
  reply: string;
  /** Of a refusal. */
  code?: string;
  /** Of `started`: what the call is repeated with. */
  body?: string;
}>;

export type StepRule<Answer> = (
  record: StepRecord | undefined,
) => Readonly<{ answer: Answer /** To be written; absent: nothing changes. */; record?: StepRecord }>;

export type StepRecords<Tx> = Readonly<{
  /**
   * The project in which a topic that is given by its ID alone is; undefined where the client does not know it yet. Without
   * this method topics are given by their full names, or with the option `projectId`.
   */
  project?(): string | undefined;
  /** Before any write of the transaction, which is not committed if another one changes the record in between. */
  readIn(transaction: Tx, ref: StepRef): Promise<StepRecord | undefined>;
  writeIn(transaction: Tx, record: StepRecord): void;
  /**
   * A transaction for a handler whose writes may be dropped: it reads as `transaction` does, and its writes are made by
   * `apply`, in their order, or never. As in any transaction of the store, reads come before writes. The next one takes the
   * place of one that was not applied.
   */
  buffered(transaction: Tx): Readonly<{ transaction: Tx; apply(): void }>;
  /**
   * Reads the record and writes what the rule makes of it, in a transaction of its own. The rule may be run several times,
   * also after a run of it was committed and the reply lost. Rejects with STORE_UNAVAILABLE when nothing is known, and with
   * `UNREADABLE_STEP` for a record that is not the library's.
   */
  change<Answer>(ref: StepRef, rule: StepRule<Answer>): Promise<Answer>;
}>;

/** Name of its document. */
export const stepRecordId = ({ consumer, saga, id, step }: StepRef): string =>
  hashOf('saga step', consumer, saga, id, step);

const DAY_MS = 86_400_000;

/**
 * How long a record is kept, tombstones too: longer than the longest deadline (28 days) and the longest retention of a
 * subscription (31 days) together, with a margin for a saga that an operator leaves parked.
 */
export const STEP_RETENTION_MS = 90 * DAY_MS;
