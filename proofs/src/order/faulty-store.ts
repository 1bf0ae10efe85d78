/**
 * The stream store as a process sees it: each method is a request, and so are the reads inside a transaction. A commit
 * inside a transaction goes wrong with the transaction as a whole.
 */
import { storeUnavailable } from '../../../shared/src/errors.ts';
import type { StreamAdmin, StreamStore } from '../../../shared/src/order/stream-store.ts';
import type { Process } from '../engine/process.ts';
import { through } from '../engine/through.ts';

export type Store = StreamStore & StreamAdmin;
type Method = Exclude<keyof Store, 'maxHeldBytes'>;

/** The other ports for which a consumer waits: its payload store, its outbox, its dead-letter topic. */
export type Request = Method | 'put' | 'get' | 'done' | 'republish' | 'dead letter';
export type Call = Process<Request>['call'];

export const lost = (request: Request, how: string): Error => storeUnavailable(`${request}: ${how}`);

export const faultyStore = (store: Store, call: Call): Store => ({
  ...through(call, store, {
    read: 'read',
    held: 'held',
    commit: 'commit',
    list: 'list',
    count: 'count',
    countHeld: 'countHeld',
  }),
  transact: (ref, work) =>
    call('transact', () =>
      store.transact(ref, (inside) => work(through(call, inside, { read: 'read', held: 'held' }))),
    ),
});
