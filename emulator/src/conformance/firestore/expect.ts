/** Short forms for the cases, with assertions whose messages say what the server did instead. */
import assert from 'node:assert/strict';
import type { CollectionReference, QuerySnapshot } from '@google-cloud/firestore';
import { status } from '@grpc/grpc-js';
import type { Case } from '../case.ts';
import type { FirestoreWorld } from './world.ts';

export type FirestoreCase = Case<FirestoreWorld>;
type Code = keyof typeof status;

/** Cases of one feature. */
export const of =
  (feature: string) =>
  (title: string, source: string, run: FirestoreCase['run'], embeddedOnly?: string): FirestoreCase => ({
    feature,
    title,
    source,
    run,
    ...(embeddedOnly !== undefined && { embeddedOnly }),
  });

/** The service does it, the embedded server says UNIMPLEMENTED and names it. */
export const refusedHere = (
  title: string,
  source: string,
  name: string,
  attempt: (world: FirestoreWorld) => Promise<unknown>,
  run: FirestoreCase['run'],
): FirestoreCase => ({
  feature: 'Refused here, not ignored',
  title,
  source,
  run,
  async refusedHere(world) {
    const { details = '' } = await refused(attempt(world), 'UNIMPLEMENTED', name);
    assert.ok(details.includes(name), `the refusal does not name ${name}: ${details}`);
  },
});

type Failure = Readonly<{ code?: number; details?: string; message?: string }>;

const described = ({ code = -1, details, message }: Failure): string =>
  `${status[code] ?? 'an error'} (${details ?? message ?? 'without a message'})`;

/** The call must answer this status. */
export async function refused(answer: Promise<unknown>, code: Code, what: string): Promise<Failure> {
  try {
    await answer;
  } catch (error) {
    const failure = error as Failure;
    if (failure.code === status[code]) return failure;
    assert.fail(`${what} is answered ${described(failure)}, not ${code}`);
  }
  assert.fail(`${what} is answered OK, not ${code}`);
}

/** The call must answer OK. */
export async function accepted<T>(answer: Promise<T>, what: string): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    assert.fail(`${what} is answered ${described(error as Failure)}, not OK`);
  }
}

/** The IDs of what a query found, in its order. */
export const ids = ({ docs }: QuerySnapshot): string => docs.map(({ id }) => id).join();

export async function found(query: Readonly<{ get(): Promise<QuerySnapshot> }>, want: string): Promise<void> {
  const seen = ids(await accepted(query.get(), 'the query'));
  assert.equal(seen, want, `it found "${seen}", not "${want}"`);
}

/** Writes documents of the collection `c` by their IDs, and gives the collection. */
export async function fill(
  { db }: FirestoreWorld,
  docs: Readonly<Record<string, object>>,
): Promise<CollectionReference> {
  const batch = db.batch();
  for (const [id, fields] of Object.entries(docs)) batch.set(db.doc(`c/${id}`), fields);
  await batch.commit();
  return db.collection('c');
}

/** Whether it has settled within this much time, in which this process had a processor at each look. */
export async function settles(promise: Promise<unknown>, withinMs: number): Promise<boolean> {
  const every = Math.min(withinMs, LOOK_MS);
  let looks = Math.ceil(withinMs / every);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setInterval(() => (looks -= 1) <= 0 && resolve(false), every);
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  const isSettled = await Promise.race([settled, late]);
  clearInterval(timer);
  return isSettled;
}

/** A busy machine makes fewer looks. */
const LOOK_MS = 10;

/** Runs `work` at once so many times. */
export const atOnce = <T>(count: number, work: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => work(i)));

/** Plain values as they are on the wire. */
export const int = (value: number | string): object => ({ integerValue: String(value) });
export const double = (value: number): object => ({ doubleValue: value });
export const text = (value: string): object => ({ stringValue: value });
export const reference = (value: string): object => ({ referenceValue: value });
export const list = (...values: readonly object[]): object => ({ arrayValue: { values } });
export const map = (fields: object): object => ({ mapValue: { fields } });
