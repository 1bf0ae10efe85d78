/**
 * What the demo counts, from the participants' own book and nothing else: whether each saga has all of its effects or none,
 * and none of them twice. Pure.
 */
import type { Counted, Effect } from '../effects.ts';

/** How a saga stood at the end of the run. */
export type Ended = Readonly<{
  id: string;
  kind: string;
  state: 'running' | 'compensating' | 'completed' | 'compensated';
  isParked: boolean;
  /** Whether the pivot was asked more than once: nothing was known of it for a while. */
  wasInDoubt: boolean;
}>;

export type Report = Readonly<{
  sagas: number;
  completed: number;
  compensated: number;
  parked: number;
  /** Effects that were committed a second time. */
  effectsTwice: number;
  /** Sagas that ended and whose effects are not those of their end. */
  halfDone: number;
}>;

const COMPENSABLE = ['payment', 'courier'];
const DECIDED = ['kitchen', 'collect', 'notify'];

export function judge(ends: readonly Ended[], { effects }: Pick<Counted, 'effects'>): Report {
  const of = Map.groupBy(effects, ({ order }) => order);
  const known = new Set(ends.map(({ id }) => id));
  const foreign = [...of.keys()].filter((order) => !known.has(order));
  if (foreign.length > 0) throw new Error(`effects of orders that were never placed: ${foreign.join(', ')}`);
  const count = (state: Ended['state']): number => ends.filter((one) => one.state === state).length;
  return {
    sagas: ends.length,
    completed: count('completed'),
    compensated: count('compensated'),
    parked: ends.filter(({ isParked }) => isParked).length,
    effectsTwice: [...of.values()].reduce((sum, own) => sum + twice(own), 0),
    halfDone: ends.filter(({ id, state }) => !isWhole(state, of.get(id) ?? [])).length,
  };
}

/** Nothing is open, nothing is done twice or by halves, and there was something to look at. */
export const holds = ({ sagas, completed, compensated, parked, effectsTwice, halfDone }: Report): boolean =>
  sagas > 0 && completed + compensated === sagas && parked + effectsTwice + halfDone === 0;

const twice = (effects: readonly Effect[]): number =>
  effects.length - new Set(effects.map(({ step, what }) => `${step} ${what}`)).size;

/** A saga that is open is not judged: it is counted as open. */
function isWhole(state: Ended['state'], effects: readonly Effect[]): boolean {
  const has = (step: string, what: Effect['what']): boolean =>
    effects.some((effect) => effect.step === step && effect.what === what);
  if (state === 'completed')
    return (
      [...COMPENSABLE, ...DECIDED].every((step) => has(step, 'do')) &&
      effects.every(({ what }) => what === 'do')
    );
  if (state === 'compensated')
    return (
      COMPENSABLE.every((step) => has(step, 'do') === has(step, 'undo')) &&
      DECIDED.every((step) => !has(step, 'do'))
    );
  return true;
}
