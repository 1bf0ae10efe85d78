/**
 * What a refusal of Cloud Tasks means for the message: given up, tried again by the next delivery, or within this one.
 */
import { PermanentError, textOf, TransientError } from '../errors.ts';

/** https://grpc.io/docs/guides/status-codes/ */
const ALREADY_EXISTS = 6;

export const isAlreadyThere = (error: unknown): boolean => codeIn(error) === ALREADY_EXISTS;

export const isMomentary = (error: unknown): boolean => MOMENTARY.has(codeIn(error) ?? -1);

/** Over a rate or quota, or not reachable: refused for the moment, whether or not it was stored. */
const MOMENTARY: ReadonlySet<number> = new Set([8, 14]);

/** What a refusal means for the message. A code that is not here is transient: nothing is given up by mistake. */
const REFUSALS: ReadonlyMap<number, readonly ['permanent' | 'transient', code: string, text: string]> =
  new Map([
    // The task itself: too large, or a form that the service never takes.
    [3, ['permanent', 'TASK_REFUSED', 'does not take this task']],
    [11, ['permanent', 'TASK_REFUSED', 'does not take this task']],
    // The deployment: somebody mends it, and the messages must still be there then.
    [5, ['transient', 'TASK_QUEUE_MISSING', 'does not exist, or was created a moment ago']],
    [
      7,
      [
        'transient',
        'TASK_QUEUE_FORBIDDEN',
        'may not be used by this service account (cloudtasks.enqueuer, and actAs for a token)',
      ],
    ],
    [
      9,
      [
        'transient',
        'TASK_QUEUE_NOT_READY',
        'cannot take tasks: disabled, or without an App Engine application',
      ],
    ],
    [12, ['transient', 'TASK_QUEUE_NOT_READY', 'is not served at this address']],
    [16, ['transient', 'TASK_QUEUE_FORBIDDEN', 'was called without valid credentials']],
    // The moment: load, a restart, a reply that was lost (the task may be stored).
    [4, ['transient', 'TASK_QUEUE_UNAVAILABLE', 'did not answer in time']],
    [8, ['transient', 'TASK_QUEUE_UNAVAILABLE', 'is over its rate or quota']],
    [14, ['transient', 'TASK_QUEUE_UNAVAILABLE', 'is not reachable']],
  ]);

export function translate(error: unknown, queue: string): PermanentError | TransientError {
  if (error instanceof TransientError) return error;
  const known = REFUSALS.get(codeIn(error) ?? -1);
  const [kind, code, what] = known ?? ['transient', 'TASK_QUEUE_UNAVAILABLE', 'failed'];
  const text = `${queue} ${what}: ${textOf(error)}`;
  return kind === 'permanent'
    ? new PermanentError(code, text, { cause: error })
    : new TransientError(code, text, { cause: error });
}

function codeIn(error: unknown): number | undefined {
  const code = (error as Readonly<{ code?: unknown }> | null)?.code;
  return typeof code === 'number' ? code : undefined;
}
