/**
 * The lease protocol with one rule removed at a time, to see that the schedules notice.
 */
import {
  type JobRecord,
  choose,
  claim,
  promote,
  renew,
  rescue,
  settle,
} from '../../../shared/src/jobs/decide.ts';
import type { Invariant } from './invariants.ts';
import type { Way } from './play.ts';

export type Mutant = Readonly<{ name: string; breaks: Invariant; way: Way }>;

const anyHolder = ({ id, token }: JobRecord) => ({ id: String(id), token: String(token) });

export const mutants: readonly Mutant[] = [
  {
    name: 'rule 1: leases are judged by the clock of the process',
    breaks: 'no two runs are live',
    way: { storeClock: (_right, wrong) => wrong },
  },
  {
    name: 'rule 1: a process writes the time of the next run, a minute early',
    breaks: 'a retry waits for its time',
    way: { store: { promote: (record, nowMs) => promote(record, nowMs + 60_000) } },
  },
  {
    name: 'rule 2: a token is the same for every run of a job',
    breaks: 'tokens grow',
    way: { store: { claim: (record, request, nowMs) => ({ ...claim(record, request, nowMs), token: 7 }) } },
  },
  {
    name: 'rule 3: a lease is counted from the arrival of its answer',
    breaks: 'no two runs are live',
    way: { worker: { leaseFrom: (_sent, arrived) => arrived } },
  },
  {
    name: 'rule 3: a handler starts with whatever is left',
    breaks: 'a run starts under its lease',
    way: { worker: { mayStart: () => true } },
  },
  {
    name: 'rule 4: the end of a run is taken from any run',
    breaks: 'no two runs are live',
    way: {
      store: {
        settle: (record, held, ending, nowMs) =>
          record.state === 'running'
            ? settle(record, { ...held, ...anyHolder(record) }, ending, nowMs)
            : undefined,
        renew: (record, held, leaseMs, nowMs) =>
          record.state === 'running'
            ? renew(record, { ...held, ...anyHolder(record) }, leaseMs, nowMs)
            : undefined,
      },
    },
  },
  {
    name: 'rule 5: the claim does not count the attempt',
    breaks: 'runs are bounded',
    way: {
      store: { claim: (record, request, nowMs) => ({ ...claim(record, request, nowMs), attempts: 1 }) },
    },
  },
  {
    name: 'rule 5: a rescue puts every job back',
    breaks: 'runs are bounded',
    way: {
      store: {
        rescue(record, nowMs) {
          const change = rescue({ ...record, maxAttempts: Infinity, crashes: 0 }, nowMs);
          if (change?.kind !== 'kept') return change;
          const { maxAttempts, crashes } = record;
          return { ...change, record: { ...change.record, maxAttempts, crashes: crashes + 1 } };
        },
      },
    },
  },
  {
    name: 'rule 5: a crash is not counted',
    breaks: 'a poison hits an innocent once',
    way: {
      store: {
        rescue(record, nowMs) {
          const change = rescue(record, nowMs);
          return change && { ...change, record: { ...change.record, crashes: record.crashes } };
        },
      },
    },
  },
  {
    name: 'rule 5: leases are judged as soon as the store has started',
    breaks: 'a crash has a cause',
    way: { judgesAtOnce: true },
  },
  {
    name: 'rule 6: suspects run together',
    breaks: 'a poison hits an innocent once',
    way: {
      store: {
        choose: (records, query) =>
          choose(
            [...records].map((record) => ({ ...record, crashes: 0 })),
            query,
          ).map((record) => [...records].find(({ id }) => id === record.id) ?? record),
      },
    },
  },
  {
    name: 'rule 6: a process asks for a suspect beside the one that it has',
    breaks: 'a poison hits an innocent once',
    way: { worker: { asksForSuspect: () => true } },
  },
  {
    name: 'rule 7: a claim of unknown outcome is not asked about',
    breaks: 'a crash has a cause',
    way: { worker: { adopts: false } },
  },
  { name: 'rule 8: no lease is renewed', breaks: 'no two runs are live', way: { renews: false } },
  {
    name: 'rule 9: a rescue forgets that a job was to be cancelled',
    breaks: 'a cancelled job does not start',
    way: { store: { rescue: (record, nowMs) => rescue({ ...record, cancelAsked: false }, nowMs) } },
  },
  {
    name: 'rule 10: the store forgets its last claims',
    breaks: 'no two runs are live',
    way: { forgets: true },
  },
  {
    name: 'rule 4: the end of a run is taken from any run, in every state',
    breaks: 'no two runs are live',
    way: {
      store: {
        settle: (record, held, ending, nowMs) =>
          settle({ ...record, state: 'running', token: Number(held.token) }, held, ending, nowMs),
      },
    },
  },
];
