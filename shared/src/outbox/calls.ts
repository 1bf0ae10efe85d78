/**
 * The names of calls: minted once for each transaction of the client, whose function may run again, and checked against
 * what would write two slots over each other.
 */
import { ConfigError, PermanentError, refused } from '../errors.ts';
import { byteLength, LIMITS } from '../message.ts';

type Slot = Readonly<{ sequenceKey?: string; id?: string }>;

type Call = Readonly<{
  call: string;
  /** Whether no other slot was reserved since that would take the same numbers, or the same names. */
  isLatest: () => boolean;
}>;

/** Names hang on the transaction object, which is the same for every run of the function. */
export function callsOf<Tx extends object>(newId: () => string): (transaction: Tx, slot: Slot) => Call {
  const minted = new WeakMap<Tx, Map<string, string>>();
  const latest = new WeakMap<Tx, Map<string, symbol>>();
  return (transaction, { sequenceKey, id }) => {
    const names = minted.get(transaction) ?? new Map<string, string>();
    minted.set(transaction, names);
    const name = JSON.stringify([sequenceKey, id]);
    const call = names.get(name) ?? id ?? newId();
    names.set(name, call);

    const slots = latest.get(transaction) ?? new Map<string, symbol>();
    latest.set(transaction, slots);
    const place = JSON.stringify(sequenceKey === undefined ? ['id', id] : ['key', sequenceKey]);
    const mine = Symbol('slot');
    slots.set(place, mine);
    return { call, isLatest: () => slots.get(place) === mine };
  };
}

export function checkAdd(isAdded: boolean, isLatest: boolean, count: number): void {
  const slot = (text: string): ConfigError =>
    new ConfigError('SLOT_USED', `${text}; accepted: all messages of a slot in one call`);
  if (isAdded) throw slot('add was called before in this run');
  if (!isLatest) throw slot('the slot was reserved again since');
  if (count === 0) throw refused('messages', [], 'at least one message');
}

export function checkId(id: string): void {
  const bytes = byteLength(id);
  if (bytes >= 1 && bytes <= LIMITS.attributeValueBytes && id.isWellFormed()) return;
  const text = `id has ${bytes} bytes; accepted: well-formed text of 1 to ${LIMITS.attributeValueBytes} bytes`;
  throw new PermanentError('INVALID_MESSAGE', text);
}
