/**
 * What concurrent deliveries of one key share in a process: the look at the key, and the transaction that stores what
 * must wait. Nothing is decided for one by what another may do: each gets its own answer from the shared commit.
 */
import { coalesced } from './coalesced.ts';
import { type Held, type HoldResult, holding } from './holding.ts';
import { freshKey, type KeyState } from './key-state.ts';
import { look, type Seen } from './lease.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';

type Item = Held &
  Readonly<{
    ref: KeyRef;
    /** What the key starts from, where it was not there when it was looked at. */
    base?: KeyState;
  }>;

export type Shared = Readonly<{
  look(key: string, ref: KeyRef): Promise<Seen>;
  hold(key: string, item: Item): Promise<HoldResult>;
}>;

/** A request to Firestore has at most 10 MiB: https://cloud.google.com/firestore/quotas#writes_and_transactions */
const REQUEST_BYTES = 8_000_000;
/** Each counts at least so much: at most 50 in one transaction, which must end within its time. */
const LEAST_WEIGHT = REQUEST_BYTES / 50;

export function sharing(ports: Ports): Shared {
  return {
    look: coalesced(
      async (refs) => {
        const [ref] = refs;
        if (ref === undefined) return [];
        const seen = await look(ports, ref);
        return refs.map(() => seen);
      },
      () => 0,
      1,
    ),
    hold: coalesced(
      async (items: readonly Item[]) => {
        const [first] = items;
        if (first === undefined) return [];
        const numbers = [...new Set(items.map(({ arrival }) => arrival.number))];
        const decide = holding(items, ports.maxAhead);
        const base = items.find((item) => item.base !== undefined)?.base ?? freshKey(ports.start);
        return ports.store.transact(first.ref, base, { numbers }, decide);
      },
      ({ message }) => Math.max(LEAST_WEIGHT, message.message.length),
      REQUEST_BYTES,
    ),
  };
}
