/**
 * What in-order delivery says about a stream: to the log, to the metrics, and to the `wake` of its options.
 */
import { codeOf, stackOf, textOf } from '../errors.ts';
import type { Context } from '../handler.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { errorType } from '../telemetry/spans.ts';
import type { StreamPolicy } from './options.ts';
import type { Complete } from './plan.ts';
import type { StreamRef } from './stream-store.ts';

type Logging = Pick<Context, 'log'>;

/** The fields by which every line names its stream. */
export const logFieldsOf = ({ consumer, source, key }: StreamRef): Readonly<Record<string, string>> => ({
  consumer,
  ...(source !== '' && { source }),
  sequenceKey: key,
});

/** What an applied commit did that an operator may want to know. */
export function reportEvents(
  { onPoison }: Pick<StreamPolicy, 'onPoison'>,
  logging: Logging,
  ref: StreamRef,
  { ended, takesOver, missing, unknownStale }: Complete['events'],
): void {
  if (takesOver) reportTakeover(ref);
  if (missing !== undefined) reportGap(logging, ref, missing);
  for (const { context, arrival } of unknownStale) reportUnknownStale(context, ref, arrival.number);
  if (ended === undefined || ended.kind === 'hung') return;
  const { attempts, failure, isPoison } = ended.verdict;
  const { number } = ended.entry;
  if (ended.kind === 'skipped') reportPoison('skip', logging, ref, number, attempts, failure.error);
  else if (isPoison && onPoison === 'block')
    reportPoison('block', logging, ref, number, attempts, failure.error);
  else reportFailure(logging, ref, number, attempts, failure.error);
}

/** A next message that fails is an error each time: everything behind it waits. */
function reportFailure(
  { log }: Logging,
  ref: StreamRef,
  sequence: number,
  attempts: number,
  error: unknown,
): void {
  count('nextFailures', { [ATTR.consumer]: ref.consumer, [ATTR.reason]: errorType(error) });
  const stack = stackOf(error);
  log.error('in order: a stream waits for its next message, which failed', {
    ...logFieldsOf(ref),
    sequence,
    attempts,
    code: codeOf(error),
    error: textOf(error),
    ...(stack !== undefined && { stack_trace: stack }),
  });
}

/** One line and one count for each number that is skipped as poison, and for each stream that is blocked. */
function reportPoison(
  policy: 'block' | 'skip',
  { log }: Logging,
  ref: StreamRef,
  sequence: number,
  attempts: number,
  error: unknown,
): void {
  count('poison', { [ATTR.consumer]: ref.consumer, [ATTR.reason]: errorType(error) });
  const text =
    policy === 'block'
      ? 'in order: a stream is blocked at a message that cannot succeed, until an operator resumes or skips it'
      : 'in order: a stream goes on without a message that cannot succeed and was dead-lettered';
  log.error(text, {
    event: policy === 'block' ? 'order_blocked' : 'order_skipped',
    ...logFieldsOf(ref),
    sequence,
    attempts,
    code: codeOf(error),
    error: textOf(error),
  });
}

/** No warning: in a stream that arrives shuffled this is every moment, and most gaps close by themselves. */
function reportGap({ log }: Logging, ref: StreamRef, missing: number): void {
  count('gaps', { [ATTR.consumer]: ref.consumer });
  log.info('in order: messages wait for a number that has not come', { ...logFieldsOf(ref), missing });
}

/** Another process died, or lost its lease, in the stream that this one takes over. */
function reportTakeover(ref: StreamRef): void {
  count('recoveries', { [ATTR.consumer]: ref.consumer, [ATTR.capability]: 'in_order' });
}

/** Never rejects: a visit that cannot be asked for costs time only. */
export async function requestWake(
  { wake }: Pick<StreamPolicy, 'wake'>,
  { log }: Logging,
  ref: StreamRef,
  atMs: number,
): Promise<void> {
  try {
    await wake(ref, atMs);
  } catch (error) {
    log.warn('in order: a wake-up could not be asked for; the sweep will do it', {
      ...logFieldsOf(ref),
      error: textOf(error),
    });
  }
}

/** A number that is done, acknowledged although it may be another message: `onUnknownStale: 'ack'`. */
function reportUnknownStale({ log }: Logging, ref: StreamRef, sequence: number): void {
  count('unknownStale', { [ATTR.consumer]: ref.consumer });
  log.warn(
    'in order: a message was acknowledged as stale, and whether its number had this content is not remembered',
    { event: 'order_stale_unknown', ...logFieldsOf(ref), sequence },
  );
}
