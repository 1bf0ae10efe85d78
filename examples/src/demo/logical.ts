/**
 * Logical messages: which publish calls mean the same message. The rule is the contract's, worked out here from the
 * file alone and not with the toolkit's code, so that the two can disagree:
 * the same `dedupId` with the same bytes is one message; where order is promised, so is the same number of one stream
 * with the same bytes; everything else stands for itself and is known by the message ID that publish() gave.
 */
import { createHash } from 'node:crypto';
import { LANES, type Lane } from './lanes.ts';
import type { Published } from './observed.ts';

export type Position = Readonly<{ key: string; number: number }>;

export type Logical = Readonly<{
  lane: Lane;
  /** Publish calls, in order; at least one. */
  calls: readonly Published[];
}>;

export function logicalMessages(published: readonly Published[]): readonly Logical[] {
  const groups: { lane: Lane; calls: Published[] }[] = [];
  const byName = new Map<string, { lane: Lane; calls: Published[] }>();
  for (const call of published) {
    const lane = LANES.find(({ source }) => source === call.event.topic);
    if (lane === undefined) throw new Error(`no lane for topic ${call.event.topic}`);
    const names = namesOf(call, lane);
    const known = names.map((name) => byName.get(name)).find((group) => group !== undefined);
    const group = known ?? { lane, calls: [] };
    if (known === undefined) groups.push(group);
    group.calls.push(call);
    for (const name of names) if (!byName.has(name)) byName.set(name, group);
  }
  return groups;
}

/** Position in an ordered stream that the attributes ask for; undefined without a valid number and a key. */
export function positionOf(
  attributes: Readonly<Record<string, string>>,
  orderingKey: string | undefined,
): Position | undefined {
  const number = attributes['sequence'];
  const key = attributes['sequenceKey'] ?? orderingKey;
  if (number === undefined || key === undefined || key === '' || !/^[1-9][0-9]{0,15}$/.test(number))
    return undefined;
  return { key, number: Number(number) };
}

export const sameBytes = (left: Uint8Array, right: Uint8Array): boolean => Buffer.compare(left, right) === 0;

/** The identity that the toolkit forwards: the publisher's own, or `<source>/<message ID>`. */
export function hasIdentity(call: Published, dedupId: string | undefined): boolean {
  if (dedupId === undefined) return false;
  const own = call.event.attributes['dedupId'];
  if (own !== undefined) return own === dedupId;
  return call.messageId !== undefined && dedupId.endsWith(`/${call.messageId}`);
}

function namesOf(call: Published, lane: Lane): string[] {
  const { attributes, orderingKey, data } = call.event;
  const names: string[] = [];
  const digest = createHash('sha256').update(data).digest('base64');
  const name = (...parts: readonly string[]): string => JSON.stringify([lane.source, digest, ...parts]);
  if (attributes['dedupId'] !== undefined) names.push(name('dedupId', attributes['dedupId']));
  const position = lane.inOrder ? positionOf(attributes, orderingKey) : undefined;
  if (position !== undefined) names.push(name('position', position.key, String(position.number)));
  return names;
}
