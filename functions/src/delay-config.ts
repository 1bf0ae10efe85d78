/**
 * The part of a function's environment that is about later delivery.
 */
import {
  bad,
  calledUrl,
  choice,
  delayQueues,
  email,
  type Environment,
  optional,
  republisherService,
  required,
  topic,
} from 'pubsub-guarantees/environment';

export type DelayConfig = Readonly<{
  /** `projects/…/locations/…/queues/…`; a task's name picks one of them. */
  queues: readonly string[];
  /** `projects/…/topics/…`: where a delayed message is published when its time has come. */
  topic: string;
  republisher: Readonly<{ service: string }> | Readonly<{ url: string; serviceAccount: string }>;
  /** Which delayed messages have an entry in the schedule ledger: those with a `scheduleKey`, all, or none. */
  ledger: 'keys' | 'all' | 'off';
  /** Whether a message that does not fit a task waits in Firestore. */
  payloads: boolean;
}>;

/** `topicVariable` says where a delayed message is published. Throws ConfigError. */
export function delayConfig(
  environment: Environment,
  project: string,
  topicVariable: 'SOURCE_TOPIC' | 'TARGET_TOPIC' | 'SAGA_TOPIC',
): DelayConfig {
  return {
    queues: delayQueues(environment, project),
    topic: topic(environment, project, topicVariable),
    republisher: republisher(environment),
    ledger: choice(environment, 'DELAY_LEDGER', ['keys', 'all', 'off']),
    payloads: choice(environment, 'DELAY_PAYLOADS', ['on', 'off']) === 'on',
  };
}

function republisher(environment: Environment): DelayConfig['republisher'] {
  const url = optional(environment, 'REPUBLISHER_URL');
  const service = republisherService(environment);
  const account = optional(environment, 'REPUBLISHER_SERVICE_ACCOUNT');
  if (url === undefined) {
    if (account !== undefined) throw bad('REPUBLISHER_SERVICE_ACCOUNT', account, 'only with REPUBLISHER_URL');
    return { service: service ?? 'default' };
  }
  if (service !== undefined) throw bad('REPUBLISHER_SERVICE', service, 'not together with REPUBLISHER_URL');
  const accepted = 'the e-mail of the account that calls REPUBLISHER_URL';
  const variable = 'REPUBLISHER_SERVICE_ACCOUNT';
  const called = calledUrl(environment, 'REPUBLISHER_URL', url);
  return {
    url: called,
    serviceAccount: email(variable, required(environment, variable, accepted), accepted),
  };
}
