/**
 * Snapshots: what a subscription had not acknowledged when the snapshot was made, and everything published to its
 * topic since. A snapshot ends seven days after the publish time of its oldest message, and is forgotten then.
 */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import { alreadyExists, DELETED_TOPIC, refuseMissing } from './names.ts';
import type { Stored } from './stored.ts';
import { timestamp, timestampMs, type Snapshot } from './wire.ts';

/** google/pubsub/v1/pubsub.proto, Snapshot.expire_time. */
const LIFETIME_MS = 7 * 86_400_000;
const SHORTEST_MS = 3_600_000;

export type Snapshots = Readonly<{
  /** Throws ALREADY_EXISTS, and FAILED_PRECONDITION for one that would end within the hour. */
  create(name: string, topic: string, labels: Snapshot['labels'], backlog: readonly Stored[]): Snapshot;
  /** These throw NOT_FOUND, or INVALID_ARGUMENT for a name that cannot be. */
  get(name: string): Snapshot;
  messages(name: string): readonly Stored[];
  /** What stands for the snapshot as long as there is one. */
  holder(name: string): object;
  replace(snapshot: Snapshot): Snapshot;
  remove(name: string): void;
  list(): readonly Snapshot[];
  published(topic: string, stored: readonly Stored[]): void;
  topicDeleted(topic: string): void;
  /** As it was saved. */
  restore(snapshot: Snapshot, messages: readonly Stored[]): void;
  clear(): void;
}>;

export function createSnapshots(now: () => number): Snapshots {
  const held = new Map<string, { snapshot: Snapshot; readonly endMs: number; readonly messages: Stored[] }>();
  const current = () => {
    for (const [name, { endMs }] of held) if (endMs <= now()) held.delete(name);
    return held;
  };
  const find = (name: string) => current().get(name) ?? refuseMissing('snapshots', name);
  return {
    create(name, topic, labels, backlog) {
      if (current().has(name)) throw alreadyExists(name);
      const oldest = backlog.reduce((least, { publishTimeMs }) => Math.min(least, publishTimeMs), now());
      const endMs = oldest + LIFETIME_MS;
      if (endMs - now() < SHORTEST_MS) {
        throw new StatusError(
          status.FAILED_PRECONDITION,
          'The snapshot would expire in less than 1 hour: the oldest unacknowledged message is too old.',
        );
      }
      const snapshot = { name, topic, labels, expireTime: timestamp(endMs) };
      held.set(name, { snapshot, endMs, messages: [...backlog] });
      return snapshot;
    },
    get: (name) => find(name).snapshot,
    messages: (name) => find(name).messages,
    holder: find,
    replace(snapshot) {
      find(snapshot.name).snapshot = snapshot;
      return snapshot;
    },
    remove(name) {
      find(name);
      held.delete(name);
    },
    list: () => [...current().values()].map(({ snapshot }) => snapshot),
    published(topic, stored) {
      if (held.size === 0) return;
      for (const { snapshot, messages } of current().values()) {
        if (snapshot.topic === topic) messages.push(...stored);
      }
    },
    topicDeleted(topic) {
      for (const one of held.values()) {
        if (one.snapshot.topic === topic) one.snapshot = { ...one.snapshot, topic: DELETED_TOPIC };
      }
    },
    restore(snapshot, messages) {
      held.set(snapshot.name, { snapshot, endMs: timestampMs(snapshot.expireTime), messages: [...messages] });
    },
    clear: () => held.clear(),
  };
}
