/**
 * What open snapshots may still have to read: each replaced version of a document once, however many snapshots
 * are open. Nothing is kept while none is, and what the oldest one cannot need is dropped when another ends.
 */
import type { Change } from './doc.ts';

export type Versions = Readonly<{
  /** Opens a snapshot of now. */
  open(): Taken;
  /** Notes the changes of one commit. */
  record(changes: readonly Change[]): void;
  kept(): number;
}>;

export type Taken = Readonly<{
  /** The first change of the document since the snapshot was taken: its `before` is what the snapshot shows. */
  changeOf(name: string): Change | undefined;
  /** Those of all documents. */
  changes(): Iterable<Change>;
  close(): void;
}>;

type Version = Readonly<{ number: number; change: Change }>;

export function versions(): Versions {
  const open = new Map<object, number>();
  const byName = new Map<string, Version[]>();
  /** Oldest first. */
  let log: Version[] = [];
  let number = 0;

  const firstSince = (name: string, taken: number): Change | undefined =>
    byName.get(name)?.find((version) => version.number > taken)?.change;

  function prune(): void {
    // Snapshots are opened in the order of their numbers, so the first is the oldest.
    const [oldest = Number.POSITIVE_INFINITY] = open.values();
    const needed = log.findIndex((version) => version.number > oldest);
    const dropped = needed === -1 ? log.length : needed;
    for (const { change } of log.slice(0, dropped)) {
      const name = change.name.full;
      const rest = byName.get(name)?.slice(1) ?? [];
      if (rest.length === 0) byName.delete(name);
      else byName.set(name, rest);
    }
    log = log.slice(dropped);
  }

  return {
    open() {
      const token = {};
      const taken = number;
      open.set(token, taken);
      return {
        changeOf: (name) => firstSince(name, taken),
        *changes() {
          for (const name of byName.keys()) {
            const change = firstSince(name, taken);
            if (change !== undefined) yield change;
          }
        },
        close() {
          const [first] = open.keys();
          if (open.delete(token) && first === token) prune();
        },
      };
    },
    record(changes) {
      number += 1;
      if (open.size === 0) return;
      for (const change of changes) {
        const version = { number, change };
        const known = byName.get(change.name.full);
        if (known === undefined) byName.set(change.name.full, [version]);
        else known.push(version);
        log.push(version);
      }
    },
    kept: () => log.length,
  };
}
