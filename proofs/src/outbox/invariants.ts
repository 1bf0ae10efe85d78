/**
 * The invariants, whatever happened: judged by what is committed and by what the topic has received, in that order.
 */
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import type { Table } from '../../../shared/src/outbox/memory-table.ts';
import type { Schedule } from './schedule.ts';

export type Invariant =
  | 'first publishes of a key are 1, 2, 3, …'
  | 'nothing is lost'
  | 'nothing is published that is not committed'
  | 'copies are the same message'
  | 'a call adds its rows once'
  | 'a confirmed call is committed'
  | 'numbers have no hole';

export type Outcome = Readonly<{ kind: 'committed' | 'unknown' }>;

export function violations(
  table: Table,
  applied: readonly OutgoingMessage[],
  calls: Schedule['calls'],
  outcomes: readonly Outcome[],
): readonly Readonly<{ invariant: Invariant; text: string }>[] {
  const broken: Readonly<{ invariant: Invariant; text: string }>[] = [];
  const say = (invariant: Invariant, text: string): void => void broken.push({ invariant, text });
  const rows = table.rows();
  const committed = new Map(rows.map(({ row, state }) => [row.id, { row, state }]));

  const copies = new Map<string, string>();
  const firsts = new Map<string, number[]>();
  for (const outgoing of applied) {
    const { dedupId = '', sequenceKey, sequence } = outgoing.attributes;
    const whole = JSON.stringify(outgoing);
    const before = copies.get(dedupId);
    copies.set(dedupId, whole);
    if (before !== undefined && before !== whole)
      say('copies are the same message', `${before} and ${whole}`);
    if (!committed.has(dedupId)) say('nothing is published that is not committed', whole);
    if (before !== undefined || sequenceKey === undefined) continue;
    firsts.set(sequenceKey, [...(firsts.get(sequenceKey) ?? []), Number(sequence)]);
  }
  for (const [key, numbers] of firsts) {
    const isInOrder = numbers.every((number, index) => number === index + 1);
    if (!isInOrder) say('first publishes of a key are 1, 2, 3, …', `${key}: ${numbers.join(' ')}`);
  }
  for (const { row, state } of committed.values()) {
    if (!copies.has(row.id)) say('nothing is lost', `row ${row.id} (${state}) was never published`);
    else if (state !== 'sent') say('nothing is lost', `row ${row.id} is still ${state}`);
  }

  const textOf = (message: Uint8Array): string =>
    /call \d+ part \d+/.exec(Buffer.from(message).toString())?.[0] ?? '';
  const texts = rows.map(({ row }) => textOf(row.message));
  for (const [index, { count }] of calls.entries()) {
    const added = texts.filter((text) => text.startsWith(`call ${index} `)).length;
    if (added !== 0 && added !== count) say('a call adds its rows once', `call ${index} has ${added} rows`);
    if (added === 0 && outcomes[index]?.kind === 'committed')
      say('a confirmed call is committed', `call ${index}`);
  }
  for (const key of ['key-0', 'key-1']) {
    const numbers = rows
      .flatMap(({ row: { place } }) => (place?.key === key ? [place.number] : []))
      .toSorted((left, right) => left - right);
    const isWhole = numbers.every((number, index) => number === index + 1);
    if (!isWhole) say('numbers have no hole', `${key}: ${numbers.join(' ')}`);
  }
  return broken;
}
