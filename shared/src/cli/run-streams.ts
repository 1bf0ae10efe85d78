/**
 * What each command of `streams` does, and what it prints. Nothing is printed before the store has answered.
 */
import { codeOf, PermanentError, textOf } from '../errors.ts';
import type { StreamDetails, StreamOperations, StreamView } from '../order/admin.ts';
import type { StreamsCommand } from './streams-command.ts';
import { columns, type Printed, shown } from './usage.ts';

/** Of one consumer; `source` is empty where its streams span all sources. */
export async function runStreams(
  streams: StreamOperations,
  { consumer, source }: Readonly<{ consumer: string; source: string }>,
  command: StreamsCommand,
): Promise<Printed> {
  switch (command.kind) {
    case 'list': {
      const { state, pageSize, page } = command;
      const pageToken = page === undefined ? {} : { pageToken: page };
      const list = await streams.list(consumer, { state, pageSize, ...pageToken });
      const unreadable = list.unreadable.map(({ key, source: from, error }) => ({
        key,
        source: from,
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
      const stream = await streams.inspect({ consumer, source, key: command.key });
      if (stream === undefined) {
        throw new PermanentError(
          'STREAM_UNKNOWN',
          `no message of ${shown(command.key)} has come to this consumer${source === '' ? '' : ` through ${shown(source)}`}`,
        );
      }
      return { object: stream, lines: detailLines(stream) };
    }
    case 'resume': {
      const resumed = await streams.resume({ consumer, source, key: command.key });
      const line = resumed ? 'resumed: the next sweep goes on with it' : 'nothing to do: it is not blocked';
      return { object: { key: command.key, resumed }, lines: [line] };
    }
    case 'skip': {
      const { key, number } = command;
      const skipped = await streams.skip({ consumer, source, key }, number);
      const line = skipped
        ? `skipped up to ${number}: the next sweep goes on behind it`
        : `nothing to do: the stream has passed ${number}`;
      return { object: { key, number, skipped }, lines: [line] };
    }
  }
}

function table(streams: readonly StreamView[]): readonly string[] {
  if (streams.length === 0) return ['no streams'];
  const rows = streams.map((stream) => [
    shown(stream.key),
    shown(stream.source),
    stream.status,
    String(stream.last),
    String(stream.held),
    String(stream.attempts),
    noteOf(stream),
  ]);
  return columns([['KEY', 'SOURCE', 'STATE', 'LAST', 'HELD', 'ATTEMPTS', ''], ...rows]);
}

function noteOf({ poison, waitingSince, next }: StreamView): string {
  if (poison !== undefined) return `poison ${poison.number}: ${poison.code} since ${poison.at.toISOString()}`;
  return waitingSince === undefined ? '' : `waits for ${next} since ${waitingSince.toISOString()}`;
}

function detailLines(stream: StreamDetails): readonly string[] {
  const { poison, gap, waitingSince, nextTryAt, leasedUntil, leaseOwner, skipped } = stream;
  const fields: readonly (readonly [string, string | undefined])[] = [
    ['key', shown(stream.key)],
    ['source', stream.source === '' ? undefined : shown(stream.source)],
    ['state', stream.status],
    ['last', String(stream.last)],
    ['next', String(stream.next)],
    ['held', `${stream.held}${stream.firstHeld === undefined ? '' : `, the first is ${stream.firstHeld}`}`],
    ['counted', stream.counted === undefined ? undefined : `${stream.counted}: other than it should hold`],
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
    ['skipped', skipped.length === 0 ? undefined : skipped.map(rangeText).join(', ')],
  ];
  return fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(14)}${value}`]));
}

const rangeText = ({ from, to }: Readonly<{ from: number; to: number }>): string =>
  from === to ? String(from) : `${from}-${to}`;
