/**
 * The transaction of a handler over Postgres, which its job's end commits: writes, messages, next jobs and the completion,
 * all or nothing. The job's row is touched last, so that no renewal waits for a handler.
 */
import { ConfigError, PermanentError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import { type Connection, jsonOf, type Statement } from '../postgres/connection.ts';
import { isUnknown, translate } from '../postgres/errors.ts';
import { type PostgresTransaction, transactionOn } from '../postgres/transaction.ts';
import { type CheckedJob, checkJobs, type Completion, type Enqueued, type JobState } from './job.ts';
import { type HeldJob, type JobTransaction, keyConflict, type Settled } from './job-store.ts';
import { settledBefore } from './postgres-exchange.ts';
import { exchangeStatement } from './postgres-statements.ts';

/** What puts the messages of a completed job into its transaction. */
export type JobOutbox = Readonly<{
  /** Rejects with PermanentError for a message that no topic takes. */
  add(tx: PostgresTransaction, held: HeldJob, messages: readonly OutgoingMessage[]): Promise<void>;
}>;

export type TransactionPorts = Readonly<{
  /** The quoted schema. */
  schema: string;
  connection: Connection;
  /** For what is asked after the end of the transaction. */
  query: Statement;
  outbox: JobOutbox | undefined;
}>;

const SETTLES = { renew: false, settle: true, claim: false, suspect: false, limits: false };

/** Begun already. */
export function handlerTransaction(
  ports: TransactionPorts,
  held: HeldJob,
): JobTransaction<PostgresTransaction> {
  const { schema, connection, query, outbox } = ports;
  const { own, release } = connection;
  let isOver = false;
  let isClosed = false;
  const tx = transactionOn(own, () => isClosed);

  const undo = async (): Promise<void> => {
    isClosed = true;
    // A handler that does not listen may still wait for a statement, and nothing is to wait for that.
    if (connection.isBusy()) return release(true);
    await connection.query('rollback', 'rollback').catch(() => release(true));
    release();
  };
  const prepare = async ({ publish, enqueue }: Completion): Promise<void> => {
    const answers = await writeJobs(schema, connection.query, checkJobs(enqueue));
    const conflict = answers.find(({ kind }) => kind === 'conflict');
    if (conflict?.kind === 'conflict') throw keyConflict(conflict.first);
    if (publish.length === 0) return;
    if (outbox === undefined) {
      const text =
        'a handler publishes, and the store has no outbox; accepted: postgresJobs(pool, { outbox })';
      throw new ConfigError('OUTBOX_MISSING', text);
    }
    await outbox.add(tx, held, publish);
  };
  const complete = async (): Promise<Settled | undefined> => {
    const text = exchangeStatement(schema, SETTLES);
    const done = JSON.stringify([{ n: 0, ...held, ending: 'done' }]);
    const [row] = await connection.query('a completion', text, ['[]', done, '[]', 0, 0, '', 0]);
    const [found] = jsonOf<readonly Readonly<{ state: JobState }>[]>(row, 'settled');
    return found === undefined ? undefined : { kind: 'settled', state: found.state };
  };

  return {
    tx,
    async commit(completion) {
      if (isOver) throw new PermanentError('TRANSACTION_OVER', 'the transaction of the job has ended');
      isOver = true;
      try {
        await prepare(completion);
        isClosed = true;
        const settled = await complete();
        if (settled !== undefined) {
          await connection.query('commit', 'commit');
          release();
          return settled;
        }
      } catch (error) {
        const known = translate('a completion', error);
        if (isUnknown(known)) {
          release(true);
          throw known;
        }
        await undo();
        return { kind: 'refused', error: known };
      }
      await undo();
      const [before] = await settledBefore(schema, query, [held]);
      return before ?? { kind: 'stolen' };
    },
    async rollback() {
      if (isOver) return;
      isOver = true;
      await undo();
    },
  };
}

/** In whatever transaction the statement runs. */
export async function writeJobs(
  schema: string,
  query: Statement,
  jobs: readonly CheckedJob[],
): Promise<readonly Enqueued[]> {
  if (jobs.length === 0) return [];
  const text = `select n::text as n, answer, id::text as id, state from ${schema}.enqueue_jobs($1::jsonb)`;
  const rows = await query('an enqueue', text, [JSON.stringify(jobs.map(lineOf))]);
  const answers: Enqueued[] = [];
  for (const { n, answer, id, state } of rows) {
    const ours = typeof id === 'string' ? id : '';
    answers[Number(n) - 1] =
      answer === 'enqueued'
        ? { kind: 'enqueued', id: ours }
        : answer === 'repeated'
          ? { kind: 'repeated', id: ours, state: state as JobState }
          : { kind: 'conflict', first: ours };
  }
  return answers;
}

/** As `enqueue_jobs` reads it. */
export const lineOf = (job: CheckedJob) => ({
  role: job.role,
  kind: job.kind,
  payload: job.payload,
  key: job.key,
  limit_key: job.limitKey,
  priority: job.priority,
  at: job.atMs === undefined ? undefined : new Date(job.atMs).toISOString(),
  after_ms: job.delayMs,
  max_attempts: job.maxAttempts,
});
