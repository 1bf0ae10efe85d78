/** The task of a process that its own handler kills, and the lines that it writes. */

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
