/**
 * Outgoing messages as rows of the handler's own commit: one group, which is published in order, under the name of the
 * claim.
 *
 * They get their `dedupId` when they are written (from consumer, input key and position), so a row that is published
 * twice is recognisable: a crash between its publish and its removal repeats it, and never loses it.
 */
import type { Clock } from '../clock.ts';
import { ConfigError, PermanentError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { checkOutgoing } from '../message.ts';
import type { Row } from '../outbox/rows.ts';
import type { Publisher } from '../publish/publisher.ts';
import { fullTopicName } from '../publish/topic-name.ts';
import { encodeMessage } from '../stored-message.ts';
import type { ClaimRequest } from './claim-store.ts';

/** Digits of a position in a row's ID. */
const POSITION_DIGITS = 6;

export type CollectorOptions = Readonly<{
  clock: Clock;
  /** Of the message as it is stored. */
  maxMessageBytes: number;
  /** Of data and attributes together. */
  maxBytes: number;
  hasPublisher: boolean;
  /** Of topics that are given by their ID. */
  project: string;
}>;

export type RowCollector = Publisher & Readonly<{ rows: readonly Row[] }>;

/** The owner keeps apart what two records of one key leave behind, once the first has outlived its retention. */
export const groupOf = ({ key, owner }: Pick<ClaimRequest, 'key' | 'owner'>): string =>
  `${key}.${hashOf(owner).slice(0, 10)}`;

/** Takes messages as `publishing` hands them over. Rejects with what a publish would reject with, before anything is written. */
export function rowCollector(
  request: ClaimRequest,
  { clock, maxMessageBytes, maxBytes, hasPublisher, project }: CollectorOptions,
): RowCollector {
  const group = groupOf(request);
  const rows: Row[] = [];
  return {
    rows,
    async publish(outgoing) {
      if (!hasPublisher) {
        const text =
          'the handler returned messages and inbox has no publisher; accepted: the option publisher';
        throw new ConfigError('PUBLISHER_MISSING', text);
      }
      checkOutgoing(outgoing, maxBytes);
      const { topic, ...parts } = outgoing;
      const position = String(rows.length).padStart(POSITION_DIGITS, '0');
      const id = `${group}.${position}`;
      const data = Buffer.from(outgoing.data);
      const message = encodeMessage({ ...parts, data, id, publishTime: new Date(clock.now()) });
      if (message.length > maxMessageBytes) {
        const text = `an outgoing message takes ${message.length} bytes in the outbox`;
        throw new PermanentError('LIMIT_EXCEEDED', `${text}; accepted: at most ${maxMessageBytes} bytes`);
      }
      rows.push({ id, topic: fullTopicName(topic, project), message, group });
      return id;
    },
  };
}
