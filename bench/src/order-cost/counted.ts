/** A client of a Firestore server behind the counting relay, which is a process of its own. */
import type { Firestore } from '@google-cloud/firestore';
import { beside } from '../later/beside.ts';
import { withClient } from '../once-firestore/clients.ts';
import type { Operations } from './billed.ts';

export type Counted = Readonly<{
  firestore: Firestore;
  /** What was billed, and which calls were made, since the last time. Nothing may be in flight. */
  take(): Promise<Taken>;
}>;

/** `calls` by method and status, as in `Commit OK`. */
type Taken = Readonly<{ operations: Operations; calls: Readonly<Record<string, number>> }>;

export async function counted<Value>(
  port: number,
  use: (counted: Counted) => Promise<Value>,
): Promise<Value> {
  const relay = await beside<Readonly<{ port: number; control: number }>>(
    new URL('./serve-counting.ts', import.meta.url),
    [String(port)],
  );
  const take = async (): Promise<Taken> => {
    const answer = await fetch(`http://127.0.0.1:${relay.ready.control}`);
    return (await answer.json()) as Taken;
  };
  try {
    return await withClient(relay.ready.port, (firestore) => use({ firestore, take }));
  } finally {
    await relay.close();
  }
}
