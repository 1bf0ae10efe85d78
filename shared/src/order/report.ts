/**
 * What in-order delivery says about a key: to the log, and to whoever can wake the key before the next sweep.
 */
import { codeOf, stackOf, textOf } from '../errors.ts';
import type { Context } from '../handler.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { errorType } from '../telemetry/spans.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';

/** A head that fails is an error each time: everything behind it waits. */
export function logFailure(
  context: Context,
  ref: KeyRef,
  sequence: number | undefined,
  attempts: number,
  error: unknown,
): void {
  count('nextFailures', { [ATTR.consumer]: ref.consumer, [ATTR.reason]: errorType(error) });
  const stack = stackOf(error);
  context.log.error('in order: a stream waits for its next message, which failed', {
    consumer: ref.consumer,
    sequenceKey: ref.key,
    sequence,
    attempts,
    code: codeOf(error),
    error: textOf(error),
    ...(stack !== undefined && { stack_trace: stack }),
  });
}

/** A wake-up that cannot be asked for costs time only. */
export function requestWake(ports: Ports, context: Context, ref: KeyRef, atMs: number): void {
  const ask = async (): Promise<void> => ports.wake(ref.key, atMs);
  // An asynchronous one counts too: its rejection would end the process if nobody took it.
  ask().catch((error: unknown) => {
    context.log.warn('in order: a wake-up could not be asked for; the sweep will do it', {
      sequenceKey: ref.key,
      error: textOf(error),
    });
  });
}
