/**
 * What a run observes: facts only, written down by the publishers and the subscribers, judged by `check` alone.
 */
import type { DemoEvent } from './event.ts';

/** One publish call. */
export type Published = Readonly<{
  event: DemoEvent;
  /** From publish(); absent where it failed. */
  messageId?: string;
  /** Why it failed. */
  error?: string;
}>;

/** One message as a pull subscription delivered it, before the subscriber's own gate. In order of arrival. */
export type Arrival = Readonly<{
  /** The lane's target topic. */
  topic: string;
  messageId: string;
  data: Uint8Array;
  attributes: Readonly<Record<string, string>>;
  orderingKey?: string;
  /** Wall clock at reception, milliseconds since the epoch. */
  atMs: number;
  /** Whether the subscriber's handler ran for it, behind the gate. */
  effect: boolean;
}>;

/** One message of the dead-letter topic. */
export type DeadLetter = Readonly<{
  messageId: string;
  data: Uint8Array;
  attributes: Readonly<Record<string, string>>;
}>;

export type Observed = Readonly<{
  published: readonly Published[];
  arrivals: readonly Arrival[];
  deadLetters: readonly DeadLetter[];
}>;
