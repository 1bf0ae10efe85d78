/** What a read of a database asks for. */
import type { View } from './documents.ts';
import type { QueryRange } from './query-run.ts';
import type { Microseconds } from './time.ts';
import type { TransactionOptions } from './transactions.ts';

/** How consistent it is asked to be. */
export type Selector =
  | Readonly<{ kind: 'strong' }>
  | Readonly<{ kind: 'transaction'; id: Uint8Array }>
  | Readonly<{ kind: 'newTransaction'; options: TransactionOptions }>
  | Readonly<{ kind: 'readTime'; time: Microseconds }>;

/** What it finds in a view, and what a read-write transaction must lock for it. */
export type Reading<T> = Readonly<{
  range?: QueryRange;
  look(view: View): Readonly<{ documents: readonly string[]; range?: QueryRange; result: T }>;
}>;
