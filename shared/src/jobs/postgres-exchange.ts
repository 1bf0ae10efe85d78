/**
 * The exchange of a worker over Postgres: one statement for all of it, part by part where the database refuses that.
 */
import { isUnknown } from '../postgres/errors.ts';
import { jsonOf, type Statement } from '../postgres/connection.ts';
import { STRICT_MS } from './decide.ts';
import type { ClaimedJob, JobState } from './job.ts';
import type { Exchange, ExchangeAnswer, HeldJob, Renewed, Settled, Settlement } from './job-store.ts';
import type { Levels } from './postgres-levels.ts';
import { limitLine } from './postgres-limits.ts';
import { exchangeStatement, type Parts, settledBeforeStatement } from './postgres-statements.ts';

export type ExchangePorts = Readonly<{
  /** The quoted schema. */
  schema: string;
  query: Statement;
  levels: Levels;
  monotonic: () => number;
}>;

export type Talk = (owner: string, call: number, what: Exchange) => Promise<ExchangeAnswer>;

/** A settlement meets its job while a cancellation changes it at most so often in a row. */
const TRIES = 5;

export function exchanging(ports: ExchangePorts): Talk {
  const { schema, query, levels, monotonic } = ports;
  const texts = new Map<string, string>();
  const textOf = (parts: Parts): string => {
    const key = Object.values(parts).join();
    const text = texts.get(key) ?? exchangeStatement(schema, parts);
    texts.set(key, text);
    return text;
  };

  const once: Talk = async (owner, call, { renew, settle, claim }) => {
    const asked = claim === undefined ? undefined : levels.next(claim);
    const limited = (claim?.roles ?? []).flatMap(({ role, limits }) =>
      limits ? limitLine(role, limits) : [],
    );
    const parts = {
      renew: renew.length > 0,
      settle: settle.length > 0,
      claim: claim !== undefined,
      suspect: claim?.suspect ?? false,
      limits: limited.length > 0,
    };
    const began = monotonic();
    const [row] = await query('an exchange', textOf(parts), [
      JSON.stringify(renew.map((one, n) => ({ n, id: one.id, token: one.token, lease_ms: one.leaseMs }))),
      JSON.stringify(settle.map(lineOf)),
      JSON.stringify(asked?.levels ?? []),
      claim?.limit ?? 0,
      Math.min(claim?.ageingMs ?? 0, STRICT_MS),
      owner,
      call,
      ...(parts.limits ? [JSON.stringify(limited)] : []),
    ]);
    const claimed = jsonOf<readonly ClaimedJob[]>(row, 'claimed');
    if (asked !== undefined) levels.found(claimed, monotonic() - began, asked.isWhole);
    return {
      renewed: inOrder<Renewed, Readonly<{ n: number; cancelAsked: boolean }>>(
        renew,
        jsonOf<readonly Readonly<{ n: number; cancelAsked: boolean }>[]>(row, 'renewed'),
        {
          found: ({ cancelAsked }) => ({ kind: 'renewed', cancelAsked }),
          missing: { kind: 'lost' },
        },
      ),
      settled: await settledOf(settle, jsonOf(row, 'settled'), TRIES),
      claimed,
    };
  };

  /** Those that met no running row of theirs are asked about: they may have been settled before. */
  const settledOf = async (
    settle: readonly Settlement[],
    found: readonly Readonly<{ n: number; state: JobState }>[],
    tries: number,
  ): Promise<readonly Settled[]> => {
    const answers: Settled[] = [];
    for (const { n, state } of found) answers[n] = { kind: 'settled', state };
    const open = [...settle.entries()].filter(([n]) => answers[n] === undefined);
    if (open.length === 0) return answers;
    const before = await settledBefore(
      schema,
      query,
      open.map(([, { held }]) => held),
    );
    for (const [index, [n, settlement]] of open.entries()) {
      const answer = before[index] ?? { kind: 'stolen' };
      // Still its own: a cancellation came in between.
      const isMissed = answer.kind === 'already' && answer.state === 'running';
      answers[n] = isMissed && tries > 0 ? await again(settlement, tries - 1) : answer;
    }
    return answers;
  };
  const again = async (settlement: Settlement, tries: number): Promise<Settled> => {
    const parts = { renew: false, settle: true, claim: false, suspect: false, limits: false };
    const values = ['[]', JSON.stringify([lineOf(settlement, 0)]), '[]', 0, 0, '', 0];
    const [row] = await query('a settlement', textOf(parts), values);
    const [answer] = await settledOf([settlement], jsonOf(row, 'settled'), tries);
    return answer ?? { kind: 'stolen' };
  };

  const alone = async (settlement: Settlement): Promise<Settled> => {
    try {
      return await again(settlement, TRIES);
    } catch (error) {
      if (isUnknown(error)) throw error;
      return { kind: 'refused', error };
    }
  };

  return async (owner, call, what) => {
    try {
      return await once(owner, call, what);
    } catch (error) {
      // A definite error of one part has undone all: each alone, so that the culprit alone fails.
      if (isUnknown(error) || what.settle.length === 0) throw error;
      const settled: Settled[] = [];
      for (const settlement of what.settle) settled.push(await alone(settlement));
      return { ...(await once(owner, call, { ...what, settle: [] })), settled };
    }
  };
}

/** For runs without a running row: in the order of the question. */
export async function settledBefore(
  schema: string,
  query: Statement,
  held: readonly HeldJob[],
): Promise<readonly Settled[]> {
  const rows = await query('a settlement', settledBeforeStatement(schema), [
    JSON.stringify(held.map(({ id, token }, n) => ({ n, id, token }))),
  ]);
  const answers = rows.map(
    (row) => JSON.parse(String(row['answer'])) as { n: number; state: JobState | null },
  );
  return inOrder(held, answers, {
    found: ({ state }) => (state === null ? { kind: 'stolen' } : { kind: 'already', state }),
    missing: { kind: 'stolen' },
  });
}

function lineOf({ held, ending }: Settlement, n: number) {
  const failed = ending.kind === 'failed' ? { delay_ms: ending.delayMs, counts: ending.counts } : {};
  const error = 'error' in ending ? { error: ending.error } : {};
  return { n, id: held.id, token: held.token, ending: ending.kind, ...failed, ...error };
}

function inOrder<Answer, Found extends Readonly<{ n: number }>>(
  asked: readonly unknown[],
  found: readonly Found[],
  how: Readonly<{ found: (one: Found) => Answer; missing: Answer }>,
): readonly Answer[] {
  const answers: Answer[] = asked.map(() => how.missing);
  for (const one of found) answers[one.n] = how.found(one);
  return answers;
}
