/**
 * A store whose transactions lock the document that they read, as Firestore's do: other transactions, and commits,
 * wait in the order in which they came. Shared by all processes of a test.
 */
import type { StreamRef } from '../../../shared/src/order/stream-store.ts';
import type { Store } from './faulty-store.ts';

export function lockingStore(store: Store): Store {
  const tails = new Map<string, Promise<void>>();

  async function locked<Result>(
    { consumer, source, key }: StreamRef,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const name = JSON.stringify([consumer, source, key]);
    const before = tails.get(name);
    let unlock = (): void => undefined;
    tails.set(name, new Promise((resolve) => (unlock = resolve)));
    await before;
    try {
      return await work();
    } finally {
      unlock();
    }
  }

  return {
    ...store,
    commit: (ref, ...rest) => locked(ref, () => store.commit(ref, ...rest)),
    transact: (ref, work) => locked(ref, () => store.transact(ref, work)),
  };
}
