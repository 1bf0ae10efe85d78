/**
 * The participants' own book of what they did, kept apart from what the library records, so that effects can be counted.
 *
 * A line is appended to the file before the commit, so no crash loses one; a document of the same name is part of the commit.
 * A line counts when its document is there: the handler of a transaction that ran twice has two lines and one document.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { Firestore, Transaction } from '@google-cloud/firestore';

export type Effect = Readonly<{
  order: string;
  step: string;
  what: 'do' | 'undo';
}>;

type Line = Effect & Readonly<{ run: string }>;

export type Effects = Readonly<{
  /** In the step's transaction, behind its last read. */
  note(transaction: Transaction, effect: Effect): void;
}>;

const COLLECTION = 'food-effects';

/** Without a file nothing is kept. */
export function effectsIn(file: string | undefined, firestore: Firestore): Effects {
  return {
    note(transaction, effect) {
      if (file === undefined) return;
      const run = randomUUID();
      appendFileSync(file, `${JSON.stringify({ run, ...effect } satisfies Line)}\n`);
      transaction.create(firestore.collection(COLLECTION).doc(run), { ...effect });
    },
  };
}

export type Counted = Readonly<{
  /** Those that were committed. */
  effects: readonly Effect[];
  /** Lines whose transaction was not committed: a crash, another writer in the way, a refusal. */
  dropped: number;
}>;

/** Rejects when a commit has no line, which would mean that effects are not counted. */
export async function countEffects(file: string, firestore: Firestore): Promise<Counted> {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
  const { docs } = await firestore.collection(COLLECTION).get();
  const committed = new Set(docs.map(({ id }) => id));
  const counted = lines.filter(({ run }) => committed.has(run));
  if (counted.length !== committed.size) {
    throw new Error(`${committed.size} commits have ${counted.length} lines in ${file}`);
  }
  return { effects: counted, dropped: lines.length - counted.length };
}
