/**
 * The commands of `outbox`. Pure.
 */
import { checkOperands, noCommand, numberOf, pageSizeOf } from './usage.ts';

export const OUTBOX_HELP = `The outbox of publishers:

  outbox list                     streams that are blocked, and rows without order that failed for good
  outbox resume KEY               a blocked stream tries its row again
  outbox skip KEY NUMBER          skips the row at which the stream is blocked: a gap for every consumer
  outbox reopen ROW               a row without order that failed for good is tried again

  --epoch EPOCH                   the stream of an earlier counter of KEY, as list --json names it
  --collection NAME               default: COLLECTION_PREFIX-outbox, or pubsub-guarantees-outbox; -rows and -streams follow
  --counters NAME                 default: COLLECTION_PREFIX-counters, or pubsub-guarantees-counters
  --counter-scope TEXT            of the publishers' counters (default: COUNTER_SCOPE)
  --page-size N                   of a list, 1 to 500 of each (default 100)`;

export type OutboxCommand =
  | Readonly<{ kind: 'list'; limit: number }>
  | Readonly<{ kind: 'resume'; key: string; epoch?: string }>
  | Readonly<{ kind: 'skip'; key: string; epoch?: string; number: number }>
  | Readonly<{ kind: 'reopen'; row: string }>;

type Values = Readonly<{ epoch?: string; 'page-size'?: string }>;

export function outboxCommand([name = '', ...operands]: readonly string[], values: Values): OutboxCommand {
  const epoch = values.epoch === undefined ? {} : { epoch: values.epoch };
  switch (name) {
    case 'list':
      checkOperands(operands, 0, 'outbox list');
      return { kind: 'list', limit: pageSizeOf(values['page-size']) };
    case 'resume': {
      const [key = ''] = checkOperands(operands, 1, 'outbox resume KEY');
      return { kind: 'resume', key, ...epoch };
    }
    case 'skip': {
      const [key = '', number = ''] = checkOperands(operands, 2, 'outbox skip KEY NUMBER');
      return { kind: 'skip', key, number: numberOf(number), ...epoch };
    }
    case 'reopen': {
      const [row = ''] = checkOperands(operands, 1, 'outbox reopen ROW');
      return { kind: 'reopen', row };
    }
    default:
      throw noCommand('outbox', name, 'list, resume, skip, reopen');
  }
}
