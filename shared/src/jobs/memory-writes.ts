/**
 * Transactions of the job store in memory: what is staged in them, and jobs that are written through them.
 */
import type { Clock } from '../clock.ts';
import { PermanentError, storeUnavailable } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { LIMITS } from '../message.ts';
import { MEMORY_PROJECT } from '../outbox/memory.ts';
import type { Network } from '../outbox/memory-table.ts';
import { type Row, rowOf } from '../outbox/rows.ts';
import { beginsAs, type JobRecord } from './decide.ts';
import { type CheckedJob, checkJobs, type Completion, type Enqueued } from './job.ts';
import { type HeldJob, type JobWriter, keyConflict, type Settled } from './job-store.ts';
import { fingerprintOf, type JobTable, keyHash, type KeyRecord, stateOf } from './memory-table.ts';

export type MemoryJobTransaction = Readonly<{
  /** What is committed, or set in this transaction; undefined when there is none. */
  get(id: string): Promise<unknown>;
  /** Visible to others after the commit. */
  set(id: string, value: unknown): void;
}>;

export type Staged = Readonly<{
  values: Map<string, unknown>;
  jobs: Map<number, JobRecord>;
  keys: Map<string, KeyRecord>;
  unlock: (() => void)[];
}>;

export type MemoryWrites = JobWriter<MemoryJobTransaction> &
  Readonly<{
    open(): MemoryJobTransaction;
    /** Throws for a transaction that is over, or of another store. */
    stagedIn(tx: MemoryJobTransaction): Staged;
    /** In one turn of the event loop. */
    commit(staged: Staged): void;
    /** Other transactions may write its keys from now on. */
    close(tx: MemoryJobTransaction): void;
  }>;

export function memoryWrites(table: JobTable, clock: Clock, network: Network): MemoryWrites {
  const opened = new WeakMap<MemoryJobTransaction, Staged>();

  const stagedIn = (tx: MemoryJobTransaction): Staged => {
    const found = typeof tx === 'object' && tx !== null ? opened.get(tx) : undefined;
    if (found === undefined)
      throw new PermanentError('INVALID_JOB', 'tx is no open transaction of this store');
    return found;
  };

  /** Waits while another transaction is writing the key. */
  const lock = async (staged: Staged, key: string): Promise<void> => {
    if (staged.keys.has(key)) return;
    for (let held = table.locks.get(key); held !== undefined; held = table.locks.get(key)) await held;
    const { promise, resolve } = Promise.withResolvers<void>();
    table.locks.set(key, promise);
    staged.unlock.push(() => {
      table.locks.delete(key);
      resolve();
    });
  };

  const put = (staged: Staged, job: CheckedJob, key: string | undefined): JobRecord => {
    const nowMs = clock.now();
    const askedMs = job.atMs ?? nowMs + job.delayMs;
    const { role, kind, limitKey, priority, maxAttempts } = job;
    const record: JobRecord = {
      id: table.nextId(),
      role,
      kind,
      payload: structuredClone(job.payload),
      key,
      limitKey,
      state: beginsAs(askedMs, nowMs),
      priority,
      runAtMs: Math.max(askedMs, nowMs),
      attempts: 0,
      crashes: 0,
      maxAttempts,
      token: 0,
      owner: undefined,
      call: undefined,
      leaseUntilMs: 0,
      claimedMs: 0,
      cancelAsked: false,
      error: undefined,
      createdMs: nowMs,
    };
    staged.jobs.set(record.id, record);
    return record;
  };

  const writeOne = async (staged: Staged, job: CheckedJob): Promise<Enqueued> => {
    if (job.key === undefined) return { kind: 'enqueued', id: String(put(staged, job, undefined).id) };
    const key = keyHash(job.key);
    await lock(staged, key);
    const fingerprint = fingerprintOf(job);
    const found = staged.keys.get(key) ?? table.keys.get(key);
    if (found === undefined || (found.expiresMs ?? Infinity) <= clock.now()) {
      const { id } = put(staged, job, key);
      staged.keys.set(key, { fingerprint, jobId: id });
      return { kind: 'enqueued', id: String(id) };
    }
    const id = String(found.jobId);
    if (found.fingerprint !== fingerprint) return { kind: 'conflict', first: id };
    return {
      kind: 'repeated',
      id,
      state: staged.jobs.get(found.jobId)?.state ?? stateOf(table, found.jobId),
    };
  };

  return {
    stagedIn,
    open() {
      const staged: Staged = { values: new Map(), jobs: new Map(), keys: new Map(), unlock: [] };
      const tx: MemoryJobTransaction = {
        get: (id) => network('get', async () => staged.values.get(id) ?? table.values.get(id)),
        set: (id, value) => void staged.values.set(id, value),
      };
      opened.set(tx, staged);
      return tx;
    },
    close(tx) {
      for (const unlock of opened.get(tx)?.unlock ?? []) unlock();
      opened.delete(tx);
    },
    commit({ values, jobs, keys }) {
      for (const [key, { jobId }] of keys) {
        const found = table.keys.get(key);
        const isOthers = found !== undefined && found.jobId !== jobId;
        if (isOthers && (found.expiresMs ?? Infinity) > clock.now())
          throw storeUnavailable('the transaction is over');
      }
      for (const [id, value] of values) table.values.set(id, value);
      for (const [id, job] of jobs) table.jobs.set(id, job);
      for (const [key, record] of keys) table.keys.set(key, record);
    },
    async write(tx, jobs) {
      const checked = checkJobs(jobs);
      const staged = stagedIn(tx);
      // In the order of keys, so that two batches never wait for each other.
      const sorted = [...checked.entries()].toSorted(([, one], [, other]) =>
        (one.key ?? '') < (other.key ?? '') ? -1 : 1,
      );
      return network('write', async () => {
        const answers: Enqueued[] = [];
        for (const [index, job] of sorted) answers[index] = await writeOne(staged, job);
        return answers;
      });
    },
  };
}

/** As Firestore's, so that a test finds what would not fit there. */
const MAX_MESSAGE_BYTES = 1_040_000;

/** The next jobs and the messages of a completion, or why it cannot be committed. */
export async function prepared(
  { write }: JobWriter<MemoryJobTransaction>,
  tx: MemoryJobTransaction,
  held: HeldJob,
  { publish, enqueue }: Completion,
  nowMs: number,
): Promise<Readonly<{ kind: 'ready'; rows: readonly Row[] }> | Extract<Settled, { kind: 'refused' }>> {
  try {
    const conflict = (await write(tx, enqueue)).find(({ kind }) => kind === 'conflict');
    if (conflict?.kind === 'conflict') return { kind: 'refused', error: keyConflict(conflict.first) };
    const limits = {
      maxMessageBytes: MAX_MESSAGE_BYTES,
      maxBytes: LIMITS.messageBytes,
      project: MEMORY_PROJECT,
      nowMs,
    };
    const idOf = (index: number): string => hashOf('job', held.id, held.token, String(index));
    return { kind: 'ready', rows: publish.map((message, index) => rowOf(idOf(index), message, limits)) };
  } catch (error) {
    if (error instanceof PermanentError) return { kind: 'refused', error };
    throw error;
  }
}
