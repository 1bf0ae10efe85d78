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
}>;

const LONGEST_SCOPE_BYTES = 1_024;

/** `usesCounters`: whether a stream begins at its counter. Throws ConfigError. */
export function outboxConfig(environment: Environment, usesCounters: boolean): OutboxConfig {
  const isOn = choice(environment, 'OUTBOX', ['off', 'on']) === 'on';
  const counterScope = optional(environment, 'COUNTER_SCOPE');
  if (counterScope === undefined) return { isOn };
  if (!isOn && !usesCounters) {
    throw bad('COUNTER_SCOPE', counterScope, 'only with OUTBOX=on or ORDER_START=counter');
  }
  if (Buffer.byteLength(counterScope) > LONGEST_SCOPE_BYTES) {
    throw bad('COUNTER_SCOPE', counterScope, `at most ${LONGEST_SCOPE_BYTES} bytes`);
  }
  return { isOn, counterScope };
}
