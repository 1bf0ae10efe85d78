/**
 * Each rule of limits taken back, to see that the schedules find it.
 */
import { chooseWithin, type Usage } from '../../../shared/src/jobs/limits.ts';
import type { StoreRules } from '../../../shared/src/jobs/memory.ts';
import type { Invariant, Way } from './limits-play.ts';

type Mutant = Readonly<{ name: string; breaks: Invariant; way: Way }>;

const judging = (change: (usage: Usage) => Partial<Usage>): Way => ({
  chooseWithin: (records, query, usage) => chooseWithin(records, query, { ...usage, ...change(usage) }),
});
type ChooseWithin = StoreRules['chooseWithin'];
/** With other limits than were asked for. */
const asking =
  (change: (limits: object) => object): ChooseWithin =>
  (records, query, usage) => {
    const roles = query.roles.map((role) => ({ ...role, limits: change(role.limits ?? {}) }));
    return chooseWithin(records, { ...query, roles }, usage);
  };

export const mutants: readonly Mutant[] = [
  {
    name: 'what runs is not counted',
    breaks: 'no more of a role run',
    way: judging(() => ({ running: () => 0 })),
  },
  {
    name: 'what runs of a key is not counted',
    breaks: 'no more of a key run',
    way: judging(({ running }) => ({
      running: (role, key) => (key === undefined ? running(role) : 0),
    })),
  },
  {
    name: 'what has started is not counted',
    breaks: 'no more of a role start',
    way: judging(() => ({ started: () => 0 })),
  },
  {
    name: 'what has started of a key is not counted',
    breaks: 'no more of a key start',
    way: judging(({ started }) => ({
      started: (periodMs, role, key) => (key === undefined ? started(periodMs, role) : 0),
    })),
  },
  {
    name: 'what has started is counted for half of the period',
    breaks: 'no more of a role start',
    way: judging(({ started }) => ({
      started: (periodMs, role, key) => started(periodMs / 2, role, key),
    })),
  },
  {
    name: 'what a claim takes itself does not count for a key',
    breaks: 'no more of a key run',
    way: {
      chooseWithin: (records, query, usage) =>
        [...records].flatMap((record) => chooseWithin([record], query, usage)).slice(0, 2),
    },
  },
  {
    name: 'limits of a key are forgotten',
    breaks: 'no more of a key run',
    way: { chooseWithin: asking((limits) => ({ ...limits, runningPerKey: undefined })) },
  },
  {
    name: 'what has started is counted for ever',
    breaks: 'no job is held back for ever',
    way: judging(({ started }) => ({ started: (_periodMs, role, key) => started(Infinity, role, key) })),
  },
];
