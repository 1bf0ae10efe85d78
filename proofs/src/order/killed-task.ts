/** What a process that is killed by its own handler is told, and what it writes down. */

export type KilledTask = Readonly<{
  firestore: string;
  pubsub: string;
  subscription: string;
  file: string;
  /** The number that kills, in each stream whose key begins with `KILLER`. */
  number: number;
  maxAttempts: number;
  sweepEveryMs: number;
}>;

export type StartedLine = Readonly<{ key: string; number: number }>;

export const CONSUMER = 'killed';
export const KILLER = 'killer';
