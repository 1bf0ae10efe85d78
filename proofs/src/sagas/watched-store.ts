/** A store of sagas that looks at what is committed. */
import type { MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import type { Instance } from '../../../shared/src/sagas/instance.ts';
import type { SagaStore } from '../../../shared/src/sagas/saga-store.ts';
import type { Violation } from './promises.ts';

/** Also sees that no command is sent again before the wait of its last sending, counted from the commit of that, is over. */
export function watchedStore(
  store: SagaStore<MemoryTransaction>,
  broken: Violation[],
): SagaStore<MemoryTransaction> {
  const sendings = new Map<string, Readonly<{ attempt: number; untilMs: number }>>();
  const look = (instance: Instance, commitMs: number): void => {
    for (const [name, { status, attempt, sentAtMs, waitMs = 0 }] of Object.entries(instance.steps)) {
      if (sentAtMs !== 'commit') continue;
      const key = `${instance.ref.id} ${name} ${status}`;
      const last = sendings.get(key);
      if (last !== undefined && attempt === last.attempt + 1 && instance.atMs < last.untilMs) {
        const text = `${key} #${attempt} was sent ${last.untilMs - instance.atMs} ms too early`;
        broken.push({ invariant: 'no wait is cut short', text });
      }
      sendings.set(key, { attempt, untilMs: commitMs + waitMs });
    }
  };
  return {
    ...store,
    writeIn(transaction, instance) {
      store.writeIn(
        {
          ...transaction,
          set: (id, value) =>
            transaction.set(id, (atMs: number) => {
              look(instance, atMs);
              return typeof value === 'function' ? value(atMs) : value;
            }),
        },
        instance,
      );
    },
  };
}
