/**
 * The commands of `streams`. Pure.
 */
import type { ListedState } from '../order/stream-store.ts';
import { CommandLineError, checkOperands, noCommand, numberOf, pageSizeOf } from './usage.ts';

export const STREAMS_HELP = `Streams of in-order delivery of one consumer:

  streams list [--state STATE]    any (default), due, waiting, blocked
  streams inspect KEY             last, next, held, gap, poison, lease of one stream
  streams resume KEY              a blocked stream tries its number again
  streams skip KEY NUMBER         skips what the stream waits for, up to NUMBER

  --consumer NAME                 whose streams (default: CONSUMER)
  --source NAME                   the subscription of the stream, as list shows it (default: SOURCE_SUBSCRIPTION)
  --scope SCOPE                   source (default), or consumer, as the consumer has it (default: ORDER_SCOPE)
  --collection NAME               default: COLLECTION_PREFIX-order, or pubsub-guarantees-order
  --dead-letter-topic TOPIC       where skip puts a message that blocks its stream (default: DEAD_LETTER_TOPIC)
  --page TOKEN                    the next page of a list, as the page before names it
  --page-size N                   1 to 500 (default 100)`;

export type StreamsCommand =
  | Readonly<{ kind: 'list'; state: ListedState; pageSize: number; page?: string }>
  | Readonly<{ kind: 'inspect' | 'resume'; key: string }>
  | Readonly<{ kind: 'skip'; key: string; number: number }>;

const STATES: readonly ListedState[] = ['any', 'due', 'waiting', 'blocked'];

type Values = Readonly<{ state?: string; page?: string; 'page-size'?: string }>;

export function streamsCommand([name = '', ...operands]: readonly string[], values: Values): StreamsCommand {
  switch (name) {
    case 'list': {
      checkOperands(operands, 0, 'streams list');
      const { state = 'any', page } = values;
      const known = STATES.find((one) => one === state);
      if (known === undefined) {
        throw new CommandLineError(`--state is ${JSON.stringify(state)}; accepted: ${STATES.join(', ')}`);
      }
      const pageSize = pageSizeOf(values['page-size']);
      return { kind: 'list', state: known, pageSize, ...(page !== undefined && { page }) };
    }
    case 'inspect':
    case 'resume': {
      const [key = ''] = checkOperands(operands, 1, `streams ${name} KEY`);
      return { kind: name, key };
    }
    case 'skip': {
      const [key = '', number = ''] = checkOperands(operands, 2, 'streams skip KEY NUMBER');
      return { kind: 'skip', key, number: numberOf(number) };
    }
    default:
      throw noCommand('streams', name, 'list, inspect, resume, skip');
  }
}
