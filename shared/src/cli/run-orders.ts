/**
 * What each command of `orders` does, and what it prints. Nothing is printed before the store has answered.
 */
import { codeOf, PermanentError, textOf } from '../errors.ts';
import type { Orders } from '../order/orders.ts';
import type { StreamDetails, StreamView } from '../order/orders-view.ts';
import type { OrdersCommand } from './orders-command.ts';
import { columns, type Printed, shown } from './usage.ts';

export async function runOrders(orders: Orders, command: OrdersCommand): Promise<Printed> {
  switch (command.kind) {
    case 'list': {
      const { state, pageSize, page } = command;
      const list = await orders.list({ state, pageSize, ...(page !== undefined && { pageToken: page }) });
      const unreadable = list.unreadable.map(({ key, error }) => ({
        key,
        code: codeOf(error),
        error: textOf(error),
      }));
      return {
        object: { ...list, unreadable },
        lines: [
          ...table(list.streams),
          ...unreadable.map(({ key, error }) => `${shown(key)}  unreadable: ${error}`),
          ...(list.nextPageToken === undefined ? [] : [`more: --page ${list.nextPageToken}`]),
        ],
      };
    }
    case 'inspect': {
      const stream = await orders.inspect(command.key);
      if (stream === undefined) {
        throw new PermanentError(
          'STREAM_UNKNOWN',
          `no message of ${shown(command.key)} has come to this consumer`,
        );
      }
      return { object: stream, lines: detailLines(stream) };
    }
    case 'resume': {
      const resumed = await orders.resume(command.key);
      const line = resumed
        ? 'resumed: the next sweep goes on with it'
        : 'nothing to do: it does not stand still';
      return { object: { key: command.key, resumed }, lines: [line] };
    }
    case 'skip': {
      const { key, number } = command;
      const skipped = await orders.skip(key, number);
      const line = skipped
        ? `given up to ${number}: the next sweep goes on behind it`
        : `nothing to do: the stream has passed ${number}`;
      return { object: { key, number, skipped }, lines: [line] };
    }
  }
}

function table(streams: readonly StreamView[]): readonly string[] {
  if (streams.length === 0) return ['no streams'];
  const rows = streams.map((stream) => [
    shown(stream.key),
    stream.state,
    String(stream.last),
    String(stream.attempts),
    noteOf(stream),
  ]);
  return columns([['KEY', 'STATE', 'LAST', 'ATTEMPTS', ''], ...rows]);
}

function noteOf({ poison, waitingSince, next }: StreamView): string {
  if (poison !== undefined) return `poison ${poison.number}: ${poison.code} since ${poison.at.toISOString()}`;
  return waitingSince === undefined ? '' : `waits for ${next} since ${waitingSince.toISOString()}`;
}

function detailLines(stream: StreamDetails): readonly string[] {
  const { poison, gap, waitingSince, nextTryAt, leasedUntil, leaseOwner, skipped } = stream;
  const fields: readonly (readonly [string, string | undefined])[] = [
    ['key', shown(stream.key)],
    ['state', stream.state],
    ['last', String(stream.last)],
    ['next', String(stream.next)],
    ['held', `${stream.held}${stream.firstHeld === undefined ? '' : `, the first is ${stream.firstHeld}`}`],
    ['gap', gap && `${gap.from} to ${gap.to}`],
    ['waiting since', waitingSince?.toISOString()],
    [
      'poison',
      poison && `${poison.number}: ${poison.code}: ${shown(poison.text)} (${poison.at.toISOString()})`,
    ],
    ['attempts', String(stream.attempts)],
    ['next try', nextTryAt?.toISOString()],
    ['lease', leaseOwner && `${leaseOwner} until ${leasedUntil?.toISOString() ?? ''}`],
    ['epoch', stream.epoch],
    ['given up', skipped.length === 0 ? undefined : skipped.map(rangeText).join(', ')],
  ];
  return fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(14)}${value}`]));
}

const rangeText = ({ from, to }: Readonly<{ from: number; to: number }>): string =>
  from === to ? String(from) : `${from}-${to}`;
