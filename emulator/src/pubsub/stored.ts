/** Messages as a topic, a subscription or a snapshot keeps them. */
import { messageBytes } from './publish-limits.ts';
import { timestamp, type PubsubMessage } from './wire.ts';

export type Stored = Readonly<{ message: PubsubMessage; publishTimeMs: number; bytes: number }>;

/** The published messages with their IDs and publish time. */
export function store(
  messages: readonly PubsubMessage[],
  publishTimeMs: number,
  nextMessageId: () => string,
): readonly Stored[] {
  const publishTime = timestamp(publishTimeMs);
  return messages.map(({ data, attributes, orderingKey }) => {
    // Copied, because the bytes are a window on the whole request, which they would keep in memory.
    const copy = Buffer.from(data);
    const message = { data: copy, attributes, messageId: nextMessageId(), publishTime, orderingKey };
    return { message, publishTimeMs, bytes: messageBytes(message) };
  });
}

/** Each message once, in the order of publishing: IDs count up. */
export function inOrder(...lists: readonly Iterable<Stored>[]): readonly Stored[] {
  const all = new Map<string, Stored>();
  for (const list of lists) {
    for (const stored of list) {
      if (!all.has(stored.message.messageId)) all.set(stored.message.messageId, stored);
    }
  }
  return [...all.values()].toSorted((a, b) => compareIds(a.message.messageId, b.message.messageId));
}

const compareIds = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : 1);

export type Retained = Readonly<{
  add(stored: Stored): void;
  /** What is younger than the retention. */
  all(): readonly Stored[];
  replace(stored: Iterable<Stored>): void;
}>;

/** Messages that are kept for `retentionMs()` after they were published; 0 keeps none. */
export function retained(now: () => number, retentionMs: () => number): Retained {
  let kept = new Set<Stored>();
  const isOver = ({ publishTimeMs }: Stored): boolean => now() - publishTimeMs > retentionMs();
  return {
    add(stored) {
      if (retentionMs() === 0) return kept.clear();
      kept.add(stored);
      // The oldest come first, nearly: what is not, goes a little later.
      for (const first of kept) {
        if (!isOver(first)) break;
        kept.delete(first);
      }
    },
    all() {
      if (retentionMs() === 0) kept.clear();
      for (const stored of kept) if (isOver(stored)) kept.delete(stored);
      return [...kept];
    },
    replace(stored) {
      kept = new Set(retentionMs() === 0 ? [] : stored);
    },
  };
}
