/**
 * Set-up of the relay's tests: one store in memory on virtual time, and a topic that records and fails on request.
 */
import { sleep } from '../../../shared/src/clock.ts';
import { PermanentError, TransientError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import {
  memoryOutbox,
  type MemoryOutbox,
  type MemoryOutboxOptions,
} from '../../../shared/src/outbox/memory.ts';
import { type Added, outbox, type SlotOptions } from '../../../shared/src/outbox/outbox.ts';
import type { RelayStore } from '../../../shared/src/outbox/outbox-store.ts';
import { relay, type Relay, type RelayOptions } from '../../../shared/src/outbox/relay.ts';

export type Failing = 'refused' | 'reply lost' | 'permanent' | Readonly<{ milliseconds: number }>;

export const message = (text: string): OutgoingMessage => ({
  topic: 't',
  data: Buffer.from(text),
  attributes: {},
});

export function world(options: Partial<MemoryOutboxOptions> = {}) {
  const clock = virtualClock();
  const store: MemoryOutbox = memoryOutbox({ clock, ...options });
  const published: OutgoingMessage[] = [];
  /** By text: what its next publishes do instead of succeeding. */
  const failing = new Map<string, Failing[]>();
  const outstanding = new Map<string, number>();
  let most = 0;

  const publisher: Publisher = {
    async publish(outgoing) {
      const key = outgoing.attributes['sequenceKey'] ?? '';
      const now = (outstanding.get(key) ?? 0) + 1;
      outstanding.set(key, now);
      if (key !== '') most = Math.max(most, now);
      try {
        const how = failing.get(textOf(outgoing))?.shift();
        if (typeof how === 'object') await sleep(clock, how.milliseconds);
        if (how === 'refused') throw new TransientError('PUBSUB_UNAVAILABLE', 'refused');
        if (how === 'permanent') throw new PermanentError('PUBLISH_REFUSED', 'never');
        published.push(outgoing);
        if (how === 'reply lost') throw new TransientError('PUBLISH_TIMEOUT', 'reply lost');
        return String(published.length);
      } finally {
        outstanding.set(key, (outstanding.get(key) ?? 1) - 1);
      }
    },
  };
  const relayOf = (own: RelayOptions = {}, over: RelayStore = store): Relay =>
    relay(over, publisher, { clock, log: silent, ...own });
  const box = outbox(store, { clock });
  const add = (text: string, slot: SlotOptions = {}): Promise<Added> =>
    store.transact(async (transaction) => (await box.reserve(transaction, slot)).add(message(text)));
  return {
    clock,
    store,
    publisher,
    published,
    failing,
    add,
    relayOf,
    texts: () => published.map(textOf),
    mostOutstanding: () => most,
  };
}

const textOf = ({ data }: OutgoingMessage): string => Buffer.from(data).toString();
