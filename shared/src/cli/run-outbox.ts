/**
 * What each command of `outbox` does, and what it prints. Nothing is printed before the store has answered.
 */
import { PermanentError } from '../errors.ts';
import { resume, skip } from '../outbox/operations.ts';
import type { RelayStore, OutboxFailures } from '../outbox/outbox-store.ts';
import type { StreamRef } from '../outbox/rows.ts';
import type { OutboxCommand } from './outbox-command.ts';
import { columns, type Printed, shown } from './usage.ts';

export async function runOutbox(store: RelayStore, command: OutboxCommand): Promise<Printed> {
  switch (command.kind) {
    case 'list': {
      const failures = await store.listFailures(command.limit);
      const streams = failures.streams.map(({ ref, sent, blocked }) => ({ ...ref, sent, ...blocked }));
      return { object: { streams, rows: failures.rows }, lines: failureLines(failures) };
    }
    case 'resume': {
      const ref = await streamOf(store, command);
      const resumed = await resume(store, ref);
      const line = resumed
        ? 'resumed: the next pass of a relay goes on with it'
        : 'nothing to do: it is not blocked';
      return { object: { ...ref, resumed }, lines: [line] };
    }
    case 'skip': {
      const { number } = command;
      const ref = await streamOf(store, command);
      const skipped = (await skip(store, ref, number)) !== undefined;
      const line = skipped
        ? `skipped ${number}: the next pass of a relay goes on behind it`
        : `nothing to do: the stream has passed ${number}, or nothing of it was ever relayed`;
      return { object: { ...ref, number, skipped }, lines: [line] };
    }
    case 'reopen': {
      const { row } = command;
      const reopened = await store.reopen(row);
      const line = reopened
        ? 'put back: the next pass of a relay publishes it'
        : 'nothing to do: no row of this name has failed for good';
      return { object: { row, reopened }, lines: [line] };
    }
  }
}

async function streamOf(
  store: RelayStore,
  { key, epoch }: Readonly<{ key: string; epoch?: string }>,
): Promise<StreamRef> {
  if (epoch !== undefined) return { key, epoch };
  const ref = await store.streamOf(key);
  if (ref !== undefined) return ref;
  throw new PermanentError(
    'STREAM_UNKNOWN',
    `no publisher took a number for ${shown(key)}; --epoch names a stream`,
  );
}

function failureLines({ streams, rows }: OutboxFailures): readonly string[] {
  if (streams.length === 0 && rows.length === 0) return ['no stream is blocked, and no row has failed'];
  const ofStreams = streams.map(({ ref, sent, blocked }) => [
    shown(ref.key),
    String(blocked.number),
    String(sent),
    shown(ref.epoch),
    `${shown(blocked.code)}: ${shown(blocked.text)}`,
  ]);
  const ofRows = rows.map(({ id, code, text }) => [id, `${shown(code)}: ${shown(text)}`]);
  return [
    ...(streams.length === 0 ? [] : columns([['KEY', 'NUMBER', 'SENT', 'EPOCH', ''], ...ofStreams])),
    ...(rows.length === 0 ? [] : columns([['ROW', ''], ...ofRows])),
  ];
}
