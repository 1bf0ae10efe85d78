/**
 * A process of the inbox's model: paused with replies on their way, or dead at any await. What it has sent by then is
 * applied all the same; it is never heard of again.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import type { VirtualClock } from '../../../shared/src/testing/index.ts';
import type { InboxDocuments } from '../../../shared/src/dedup/document-inbox.ts';
import type { MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import { gate, pausable } from './fixture.ts';

const CALLS = [
  'create',
  'read',
  'renewal',
  'take-over',
  'remove',
  'handler',
  'get',
  'commit',
  'publish',
  'first',
  'claim',
  'remove rows',
  'put off',
] as const;

/** `before`: nothing is sent yet. `after`: it is done, and not yet heard of. */
export type Site = `${'before' | 'after'} ${(typeof CALLS)[number]}`;
type Call = (typeof CALLS)[number];

export const deathSites: readonly Site[] = CALLS.flatMap((call): Site[] => [
  `before ${call}`,
  `after ${call}`,
]);

export type MortalInbox = Readonly<{
  clock: Clock;
  documents: InboxDocuments<MemoryTransaction>;
  publisher: Publisher;
  handler(inner: InboxHandler<MemoryTransaction>): InboxHandler<MemoryTransaction>;
  pause(milliseconds: number): void;
}>;

/** `dies` is asked at each site; who says so is replaced. */
export function mortalInbox(
  clock: VirtualClock,
  inner: InboxDocuments<MemoryTransaction>,
  publisher: Publisher,
  dies: (site: Site) => boolean,
): MortalInbox {
  const own = pausable(clock);
  const never = new Promise<never>(() => {});
  let resumed: Promise<void> = Promise.resolve();

  const pass = async (site: Site): Promise<void> => {
    if (resumed !== never && dies(site)) {
      own.pause();
      resumed = never;
    }
    for (let waited: unknown; waited !== resumed; await resumed) waited = resumed;
  };
  const guarded = async <Value>(call: Call, send: () => Promise<Value>): Promise<Value> => {
    await pass(`before ${call}`);
    const value = await send();
    await pass(`after ${call}`);
    return value;
  };

  return {
    clock: own,
    documents: {
      ...inner,
      create: (key, write) => guarded('create', () => inner.create(key, write)),
      read: (key) => guarded('read', () => inner.read(key)),
      update: (key, revision, write) =>
        guarded(write.kind === 'renewal' ? 'renewal' : 'take-over', () => inner.update(key, revision, write)),
      remove: (key, revision) => guarded('remove', () => inner.remove(key, revision)),
      outbox: {
        ...inner.outbox,
        first: (prefix) => guarded('first', () => inner.outbox.first(prefix)),
        claim: (...asked) => guarded('claim', () => inner.outbox.claim(...asked)),
        remove: (ids) => guarded('remove rows', () => inner.outbox.remove(ids)),
        putOff: (...asked) => guarded('put off', () => inner.outbox.putOff(...asked)),
      },
      async transact(attempt) {
        await inner.transact(async (transaction) => {
          const get = (id: string): Promise<unknown> => guarded('get', () => transaction.get(id));
          const completion = await attempt({ ...transaction, get });
          await pass('before commit');
          return completion;
        });
        await pass('after commit');
      },
    },
    publisher: { publish: (message) => guarded('publish', () => publisher.publish(message)) },
    handler: (handle) => (message, context) => guarded('handler', () => handle(message, context)),
    pause(milliseconds) {
      if (resumed === never) return;
      own.pause();
      const { opened, open } = gate();
      resumed = opened;
      clock.after(milliseconds, () => {
        open();
        // Replies before timers: what the rules about the clock are for.
        clock.after(0, () => {
          if (resumed === opened) own.resume();
        });
      });
    },
  };
}
