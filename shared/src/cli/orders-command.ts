/**
 * The commands of `orders`. Pure.
 */
import type { ListedState } from '../order/order-store.ts';
import { CommandLineError, counted, noCommand, numberOf, pageSizeOf } from './usage.ts';

export const ORDERS_HELP = `Ordered streams of one consumer:

  orders list [--state STATE]     any (default), waiting, halted, ready
  orders inspect KEY              last, next, held, gap, poison, lease of one stream
  orders resume KEY               a stream that stands still tries its number again
  orders skip KEY NUMBER          gives up what the stream waits for, up to NUMBER

  --consumer NAME                 whose streams (default: CONSUMER)
  --collection NAME               default: COLLECTION_PREFIX-order, or pubsub-guarantees-order
  --dead-letter-topic TOPIC       where skip puts a message at which its stream stands still (default: DEAD_LETTER_TOPIC)
  --page TOKEN                    the next page of a list, as the page before names it
  --page-size N                   1 to 500 (default 100)`;

export type OrdersCommand =
  | Readonly<{ kind: 'list'; state: ListedState; pageSize: number; page?: string }>
  | Readonly<{ kind: 'inspect' | 'resume'; key: string }>
  | Readonly<{ kind: 'skip'; key: string; number: number }>;

const STATES: readonly ListedState[] = ['any', 'waiting', 'halted', 'ready'];

type Values = Readonly<{ state?: string; page?: string; 'page-size'?: string }>;

export function ordersCommand([name = '', ...operands]: readonly string[], values: Values): OrdersCommand {
  switch (name) {
    case 'list': {
      counted(operands, 0, 'orders list');
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
      const [key = ''] = counted(operands, 1, `orders ${name} KEY`);
      return { kind: name, key };
    }
    case 'skip': {
      const [key = '', number = ''] = counted(operands, 2, 'orders skip KEY NUMBER');
      return { kind: 'skip', key, number: numberOf(number) };
    }
    default:
      throw noCommand('orders', name, 'list, inspect, resume, skip');
  }
}
