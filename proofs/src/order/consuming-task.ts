/**
 * The task of a consuming process, and the lines that it writes.
 */

export const CONSUMER = 'killed';

export type ConsumingTask = Readonly<{
  name: string;
  firestore: string;
  pubsub: string;
  subscription: string;
  /** Where its lines go. */
  file: string;
}>;

/** `atMs`, `untilMs`: on the machine's clock, which all processes share. `untilMs`: the lease is not over before. */
export type RunLine = Readonly<{
  what: 'begun' | 'effect';
  worker: string;
  key: string;
  number: number;
  dedupId: string;
  text: string;
  token: string;
  atMs: number;
  untilMs: number;
}>;

/** `takeover`: an expired lease was taken over. `swept`: a sweep took a stream. */
export type ConsumingLine = RunLine | Readonly<{ what: 'takeover' | 'swept'; worker: string }>;
