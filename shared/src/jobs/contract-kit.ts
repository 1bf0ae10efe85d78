/**
 * What the parts of the contract suite of jobs have in common.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ClaimedJob, Enqueued, NewJob } from './job.ts';
import type { ClaimQuery, Ending, Exchange, HeldJob, JobStore, Settled } from './job-store.ts';

export type JobsUnderTest<Tx> = Readonly<{
  store: JobStore<Tx>;
  /** Of another process, over the same tables. */
  another(): JobStore<Tx>;
  /** A transaction of a caller's. What `work` throws rolls it back. */
  transact<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result>;
  /** Everything that is stored becomes so much older. */
  age(milliseconds: number): Promise<void>;
  /** A write of the handler's own, and what of it is committed. */
  put(tx: Tx, name: string): Promise<void>;
  isThere(name: string): Promise<boolean>;
  /** Texts of the outbox's rows, in no order. */
  published(): Promise<readonly string[]>;
  /** How many runs of the job the log has. */
  logged(id: string): Promise<number>;
  close(): Promise<void>;
}>;

export const LEASE_MS = 30_000;
export const ERROR = { code: 'BROKEN', text: 'it broke' };
export const NOTHING: Exchange = { renew: [], settle: [] };

export type JobKit = ReturnType<typeof jobKit>;

/** `opened` is called in tests alone. */
export function jobKit<Tx>(opened: () => JobsUnderTest<Tx>) {
  let calls = 0;
  const roleOf = (): string => `r${randomUUID().slice(0, 8)}`;
  const enqueue = (...jobs: readonly NewJob[]): Promise<readonly Enqueued[]> =>
    opened().transact((tx) => opened().store.write(tx, jobs));
  const one = async (job: NewJob): Promise<Enqueued> => first(await enqueue(job));
  const idOf = (answer: Enqueued): string => (answer.kind === 'conflict' ? answer.first : answer.id);
  const query = (role: string, change: Partial<ClaimQuery> = {}): ClaimQuery => ({
    roles: [{ role, leaseMs: LEASE_MS }],
    limit: 10,
    suspect: true,
    ageingMs: 60_000,
    ...change,
  });
  const claim = async (
    role: string,
    change: Partial<ClaimQuery> = {},
    store: Pick<JobStore<unknown>, 'exchange'> = opened().store,
  ): Promise<readonly ClaimedJob[]> =>
    (await store.exchange('w', (calls += 1), { ...NOTHING, claim: query(role, change) })).claimed;
  const settle = async ({ id, token }: HeldJob, ending: Ending): Promise<Settled> => {
    const what = { renew: [], settle: [{ held: { id, token }, ending }] };
    return first((await opened().store.exchange('w', (calls += 1), what)).settled);
  };
  const fail = (delayMs: number, counts = true): Ending => ({
    kind: 'failed',
    error: ERROR,
    delayMs,
    counts,
  });
  const rescueAll = async (): Promise<void> => {
    while ((await opened().store.rescue(1_000)).more);
  };
  /** One claimed job of a role of its own. */
  const running = async (job: Partial<NewJob> = {}): Promise<ClaimedJob> => {
    const role = roleOf();
    await enqueue({ role, kind: 'k', payload: 1, ...job });
    const [claimed] = await claim(role);
    assert.ok(claimed !== undefined);
    return claimed;
  };
  const expire = async (): Promise<void> => {
    await opened().age(LEASE_MS + 1_000);
    await rescueAll();
  };

  return { roleOf, enqueue, one, idOf, query, claim, settle, fail, rescueAll, running, expire };
}

function first<Item>(items: readonly Item[]): Item {
  const [item] = items;
  assert.ok(item !== undefined);
  return item;
}
