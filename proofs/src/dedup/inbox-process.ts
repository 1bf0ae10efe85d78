/**
 * A process of the inbox's simulation: its store, its publisher, its handler and the row of its transaction are requests.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import type { VirtualClock } from '../../../shared/src/testing/index.ts';
import type { InboxDocuments } from '../../../shared/src/dedup/document-inbox.ts';
import type { MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import { type Named, placesOf } from '../engine/places.ts';
import { type Process, startProcess } from '../engine/process.ts';
import { through } from '../engine/through.ts';

/** What the inbox's documents are asked for. */
export const INBOX_REQUESTS = [
  'create',
  'read',
  'renewal',
  'take-over',
  'remove',
  'get',
  'commit',
  'first',
  'claim',
  'remove rows',
  'reschedule',
] as const;
const REQUESTS = [...INBOX_REQUESTS, 'handler', 'publish'] as const;

type Request = (typeof REQUESTS)[number];
export type Site = Named<Request>;

/** Every await of the inbox waits for one of these. */
export const deathSites: readonly Site[] = placesOf(REQUESTS);

type InboxProcess = Pick<Process, 'pause'> &
  Readonly<{
    clock: Clock;
    documents: InboxDocuments<MemoryTransaction>;
    publisher: Publisher;
    handler(inner: InboxHandler<MemoryTransaction>): InboxHandler<MemoryTransaction>;
  }>;

export function startInboxProcess(
  clock: VirtualClock,
  inner: InboxDocuments<MemoryTransaction>,
  publisher: Publisher,
  { dies, died }: Readonly<{ dies(site: Site): boolean; died(): void }>,
): InboxProcess {
  const process = startProcess<Request>(clock, {
    dies: (request, when) => dies(`${when} ${request}`),
    died,
    lost: (_request, how) => storeUnavailable(how),
  });
  const { call } = process;
  return {
    clock: process.clock,
    pause: process.pause,
    documents: inboxDocumentsOf(process, inner),
    publisher: through(call, publisher, { publish: 'publish' }),
    handler: (handle) => (message, context) => call('handler', () => handle(message, context)),
  };
}

/** The inbox's documents as the process sees them. */
export function inboxDocumentsOf(
  process: Process<(typeof INBOX_REQUESTS)[number]>,
  inner: InboxDocuments<MemoryTransaction>,
): InboxDocuments<MemoryTransaction> {
  const { call } = process;
  const documents = through(call, inner, {
    create: 'create',
    read: 'read',
    update: (_key, _revision, { kind }) => (kind === 'renewal' ? 'renewal' : 'take-over'),
    remove: 'remove',
  });
  const outbox = through(call, inner.outbox, {
    first: 'first',
    claim: 'claim',
    remove: 'remove rows',
    reschedule: 'reschedule',
  });
  return {
    ...documents,
    outbox,
    async transact(attempt) {
      await inner.transact(async (transaction) => {
        const completion = await attempt(through(call, transaction, { get: 'get' }));
        process.pass('commit', 'before');
        await process.awake();
        return completion;
      });
      process.pass('commit', 'after');
      await process.awake();
    },
  };
}
