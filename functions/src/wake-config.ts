/**
 * The part of the environment that is about wake-ups: tasks by which a function calls itself for a stream whose next
 * message failed, when its pause is over. Off unless WAKE_QUEUE is set; then the sweep alone tries again.
 */
import {
  bad,
  calledUrl,
  email,
  type Environment,
  optional,
  required,
  taskQueue,
} from 'pubsub-guarantees/environment';

export type WakeConfig = Readonly<{
  /** `projects/…/locations/…/queues/…`: with a limit of attempts, unlike the queue of delayed messages. */
  queue: string;
  /** The function's own address, as the audience of the token has it. */
  url: string;
  /** The e-mail of the account whose token the task carries; it may call the function. */
  serviceAccount: string;
}>;

const VARIABLES = ['WAKE_QUEUE', 'WAKE_URL', 'WAKE_SERVICE_ACCOUNT'] as const;

/** Undefined: nothing is woken. `hasStreams`: whether the function delivers in order. Throws ConfigError. */
export function wakeConfig(
  environment: Environment,
  project: string,
  hasStreams: boolean,
): WakeConfig | undefined {
  if (!hasStreams || optional(environment, 'WAKE_QUEUE') === undefined) {
    const accepted = hasStreams ? 'only with WAKE_QUEUE' : 'only for fifo and pipeline';
    for (const variable of VARIABLES) {
      const value = optional(environment, variable);
      if (value !== undefined) throw bad(variable, value, accepted);
    }
    return undefined;
  }
  const account = 'the e-mail of an account that may call this function (needed with WAKE_QUEUE)';
  return {
    queue: taskQueue(environment, project, 'WAKE_QUEUE'),
    url: ownUrl(environment),
    serviceAccount: email(
      'WAKE_SERVICE_ACCOUNT',
      required(environment, 'WAKE_SERVICE_ACCOUNT', account),
      account,
    ),
  };
}

function ownUrl(environment: Environment): string {
  const accepted = 'the https URL of this function, without a path (needed with WAKE_QUEUE)';
  const value = calledUrl(environment, 'WAKE_URL', required(environment, 'WAKE_URL', accepted));
  const { pathname, search, hash } = new URL(value);
  if (pathname !== '/' || search !== '' || hash !== '') throw bad('WAKE_URL', value, accepted);
  return value;
}
