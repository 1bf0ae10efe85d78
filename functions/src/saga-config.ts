/**
 * The part of the environment that is about sagas: which topic the orchestrator has, and which file has the definitions.
 * Only the function `saga` reads it.
 */
import { bad, choice, type Environment, optional, required, topic } from 'pubsub-guarantees/environment';

export type SagaConfig = Readonly<{
  /** `projects/…/topics/…`: where starts, replies and the orchestrator's own timers come to. */
  topic: string;
  /** The file whose default export is the list of definitions, as it was given. */
  module: string;
}>;

/** Throws ConfigError, also for a variable that would be obeyed by another function and has no meaning for this one. */
export function sagaConfig(environment: Environment, project: string): SagaConfig {
  const target = optional(environment, 'TARGET_TOPIC');
  if (target !== undefined) throw bad('TARGET_TOPIC', target, 'not for saga: each step names its topic');
  // An instance, the record of its event and what leaves are one commit, so they are in one database.
  choice(environment, 'DEDUP_STORE', ['firestore']);
  choice(environment, 'DEDUP_ON_STORE_UNAVAILABLE', ['retry']);
  choice(environment, 'DEDUP_ON_CONFLICT', ['deadLetter', 'ack']);
  return {
    topic: topic(environment, project, 'SAGA_TOPIC'),
    module: required(
      environment,
      'SAGA_MODULE',
      'a file whose default export is the list of definitions, for example sagas.js',
    ),
  };
}
