/**
 * How a store finds instances again: one sorted text for each question, so that no query needs an index of several
 * fields. Each begins with a hash of the consumer; what has ended has no `wake`.
 */
import { hashOf } from '../hash.ts';
import { dueText, dueUntil, LAST, sortedMs } from '../shards.ts';
import { type Instance, instanceId, isEnded, isParked, type SagaState } from './instance.ts';
import type { SagaQuery } from './saga-store.ts';

export type SortKeys = Readonly<{ wake: string | null; byState: string }>;

/** `from` inclusive, `to` exclusive. */
export type Range = Readonly<{ field: keyof SortKeys; from: string; to: string }>;

/**
 * Parked instances are between the two open states, so that each question is one range: of a state with what is parked
 * in it, of what is parked, of what is open, of all.
 */
const BUCKETS = ['compensating', 'parked', 'running', 'completed', 'compensated'] as const;
type Bucket = (typeof BUCKETS)[number];

const bucketOf = (instance: Instance): Bucket => (isParked(instance) ? 'parked' : instance.state);

export function sortKeys(instance: Instance, shards: number): SortKeys {
  const { ref, wakeAtMs, startedAtMs } = instance;
  const id = instanceId(ref);
  const scope = hashOf(ref.consumer);
  const isAwake = wakeAtMs !== undefined && !isEnded(instance);
  return {
    wake: isAwake ? dueText(id, ref.consumer, wakeAtMs, shards) : null,
    byState: `${scope}/${BUCKETS.indexOf(bucketOf(instance))}/${sortedMs(startedAtMs)}/${id}`,
  };
}

export const dueRange = (consumer: string, shard: number, untilMs: number): Range => ({
  field: 'wake',
  ...dueUntil(consumer, shard, untilMs),
});

export function listRange({ consumer, state, parked }: SagaQuery): Range {
  const buckets = BUCKETS.map((bucket, index) => ({ bucket, index })).filter(({ bucket }) =>
    mayHold(bucket, state, parked),
  );
  const [first, last] = [buckets[0]?.index ?? 0, buckets.at(-1)?.index ?? 0];
  const scope = hashOf(consumer);
  return { field: 'byState', from: `${scope}/${first}/`, to: `${scope}/${last}/${LAST}` };
}

function mayHold(bucket: Bucket, state: SagaState | undefined, parked: boolean | undefined): boolean {
  if (bucket === 'parked') return parked !== false && state !== 'completed' && state !== 'compensated';
  return parked !== true && (state === undefined || state === bucket);
}

/** What the range alone does not say. */
export function isListed(instance: Instance, query: SagaQuery): boolean {
  const { saga, state, parked, version, startedBeforeMs } = query;
  return (
    (saga === undefined || instance.ref.saga === saga) &&
    (state === undefined || instance.state === state) &&
    (parked === undefined || isParked(instance) === parked) &&
    (version === undefined || instance.version === version) &&
    (startedBeforeMs === undefined || instance.startedAtMs < startedBeforeMs)
  );
}
