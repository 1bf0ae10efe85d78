/**
 * For the tests of this folder: documents that fail on request the way a network does.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import { type NetworkFault, send } from '../engine/faults.ts';
import type { ClaimDocuments } from '../../../shared/src/dedup/document-claims.ts';

type Method = 'create' | 'read' | 'update' | 'remove';
export type Call = Readonly<{ method: Method; detail: string; key: string; number: number }>;

/** `plan` is asked before each call; `calls` lists them as `create claim`, `update done`, `read`, … */
export function faultyDocuments(
  inner: ClaimDocuments,
  clock: Clock,
  plan: (call: Call) => NetworkFault | undefined,
): ClaimDocuments & Readonly<{ calls: readonly string[] }> {
  const calls: string[] = [];
  const ask = <Value>(
    method: Method,
    detail: string,
    key: string,
    apply: () => Promise<Value>,
  ): Promise<Value> => {
    calls.push(detail === '' ? method : `${method} ${detail}`);
    return send(clock, plan({ method, detail, key, number: calls.length }), apply, storeUnavailable);
  };
  return {
    calls,
    create: (key, write) => ask('create', write.kind, key, () => inner.create(key, write)),
    read: (key) => ask('read', '', key, () => inner.read(key)),
    update: (key, revision, write) =>
      ask('update', write.kind, key, () => inner.update(key, revision, write)),
    remove: (key, revision) => ask('remove', '', key, () => inner.remove(key, revision)),
    tokenOf: (revision) => inner.tokenOf(revision),
  };
}

/** A promise and how to settle it. */
export function gate(): Readonly<{ opened: Promise<void>; open(): void }> {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
