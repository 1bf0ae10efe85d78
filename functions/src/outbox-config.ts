/**
 * The part of the environment that is about what publishers keep in Firestore: their outbox and their counters, in the
 * database and under the prefix of the function's own collections.
 */
import { bad, choice, type Environment, optional } from 'pubsub-guarantees/environment';

export type OutboxConfig = Readonly<{
  /** Whether the sweep publishes what the outbox and the inbox left behind, and gaps are repaired from the outbox. */
  isOn: boolean;
  /** The `scope` of the publishers' counters, where they have one. */
  counterScope?: string;
  /** The `shards` of the publishers' outbox, where they have another number than the default. */
  shards?: number;
}>;

const LONGEST_SCOPE_BYTES = 1_024;
const MOST_SHARDS = 256;

/**
 * `usesCounters`: whether a stream begins at its counter. `hasRows`: whether the function's own messages wait in the
 * outbox, so that it cannot be off. Throws ConfigError.
 */
export function outboxConfig(
  environment: Environment,
  usesCounters: boolean,
  { hasRows }: Readonly<{ hasRows: boolean }> = { hasRows: false },
): OutboxConfig {
  const isOn = choice(environment, 'OUTBOX', hasRows ? ['on'] : ['off', 'on']) === 'on';
  const shards = shardsOf(environment, isOn);
  const rest = { isOn, ...(shards !== undefined && { shards }) };
  const counterScope = optional(environment, 'COUNTER_SCOPE');
  if (counterScope === undefined) return rest;
  if (!isOn && !usesCounters) {
    throw bad('COUNTER_SCOPE', counterScope, 'only with OUTBOX=on or ORDER_START=counter');
  }
  if (Buffer.byteLength(counterScope) > LONGEST_SCOPE_BYTES) {
    throw bad('COUNTER_SCOPE', counterScope, `at most ${LONGEST_SCOPE_BYTES} bytes`);
  }
  return { ...rest, counterScope };
}

function shardsOf(environment: Environment, isOn: boolean): number | undefined {
  const value = optional(environment, 'OUTBOX_SHARDS');
  if (value === undefined) return undefined;
  if (!isOn) throw bad('OUTBOX_SHARDS', value, 'only with OUTBOX=on');
  const isNumber = /^[1-9][0-9]{0,2}$/.test(value) && Number(value) <= MOST_SHARDS;
  if (!isNumber) throw bad('OUTBOX_SHARDS', value, `a whole number from 1 to ${MOST_SHARDS}`);
  return Number(value);
}
