/**
 * Each rule of recurring jobs taken back, to see that the schedules find it.
 */
import { dueOf, keyOf } from '../../../shared/src/jobs/recurrence.ts';
import type { Invariant, Way } from './recurring-play.ts';

type Mutant = Readonly<{ name: string; breaks: Invariant; way: Way }>;

let calls = 0;

export const mutants: readonly Mutant[] = [
  {
    name: 'the key of each job is another',
    breaks: 'a due time is one job',
    way: { rules: { keyOf: (id, ms) => `${keyOf(id, ms)} ${(calls += 1)}` } },
  },
  {
    name: 'the key is the recurrence alone',
    breaks: 'no due time is lost',
    way: { rules: { keyOf: (id) => keyOf(id, 0) } },
  },
  {
    name: 'the store does not look whether another process has decided',
    breaks: 'due times are made in order',
    way: { mayDecide: () => true },
  },
  {
    name: 'a due time is decided in a commit before that of its jobs',
    breaks: 'no due time is lost',
    way: {
      store: (store) => ({
        ...store,
        async recur(what) {
          const isMade = await store.recur({ ...what, jobs: [] });
          if (isMade) await store.submit(what.jobs);
          return isMade;
        },
      }),
    },
  },
  {
    name: 'the clock of the process decides what is due',
    breaks: 'none is made before its time',
    way: {
      store: (store, { clock }) => ({
        ...store,
        recurrences: async (ids) => ({ ...(await store.recurrences(ids)), nowMs: clock.now() }),
      }),
    },
  },
  {
    name: 'each start of a process begins anew',
    breaks: 'no due time is lost',
    way: {
      store(store, { table }) {
        let isFirst = true;
        return {
          ...store,
          async recurrences(ids) {
            const { nowMs } = await store.recurrences(ids);
            if (isFirst) for (const key of table.recurrences.keys()) table.recurrences.set(key, nowMs);
            isFirst = false;
            return store.recurrences(ids);
          },
        };
      },
    },
  },
  {
    name: 'missed due times are not made, whatever the policy',
    breaks: 'no due time is lost',
    way: {
      rules: { dueOf: (one, madeMs, nowMs) => dueOf({ ...one, missed: 'skip' }, madeMs, nowMs) },
    },
  },
  {
    name: 'all is decided up to the time of the look and a minute more',
    breaks: 'no due time is lost',
    way: {
      rules: {
        dueOf(one, madeMs, nowMs) {
          const due = dueOf(one, madeMs, nowMs);
          return due && { ...due, toMs: nowMs + 180_000 };
        },
      },
    },
  },
];
