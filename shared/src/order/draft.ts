/**
 * What the plan of one cycle rests on, and the commit that it is drafting.
 */
import type { Outcome } from '../outcome.ts';
import type { Batch, BatchEnd, Progress } from './batch.ts';
import type { HeldView, Page } from './held-view.ts';
import type { Delivery, Visit } from './mailbox.ts';
import type { StreamPolicy } from './options.ts';
import { applyPatch, type StreamFields, type StreamState } from './stream-state.ts';
import type { HeldMessage } from './stream-store.ts';

export type Situation = Readonly<{
  policy: Pick<
    StreamPolicy,
    'leaseMs' | 'maxAhead' | 'maxAttempts' | 'onPoison' | 'onUnknownStale' | 'pageSize' | 'start'
  >;
  /** The document, as this process remembers it or has read it in this cycle (`isFresh`). */
  state: StreamState;
  isFresh: boolean;
  /** On the store's clock. */
  nowMs: number;
  /** On this process's clock. */
  monotonic: number;
  view: HeldView;
  /** What has become of the batch that was started last, where that is not settled yet. */
  progress: Progress | undefined;
  /** The batch is still at it: this cycle is a checkpoint beside a handler. */
  running: Batch | undefined;
  /** Unanswered, in the order of their arrival. */
  mailbox: readonly Delivery[];
  visit: Visit | undefined;
  /** The process is about to end: nothing starts any more. */
  isStopping: boolean;
  /** The name of the lease, should a batch be started. */
  owner: string;
}>;

export type Answer = Readonly<{ delivery: Delivery; outcome: Outcome }>;

/** What must be known or made before a plan can be complete. */
export type Need =
  | Readonly<{ kind: 'read' }>
  | Readonly<{ kind: 'look'; pages: readonly Page[] }>
  | Readonly<{ kind: 'encode'; deliveries: readonly Delivery[] }>;

export type Draft = {
  /** The document as the commit will leave it. */
  state: StreamState;
  fields: StreamFields;
  /** The lease is that of this worker. */
  isOwner: boolean;
  readonly create: Map<number, HeldMessage>;
  readonly remove: Map<number, HeldMessage>;
  readonly answers: Answer[];
  /** How the batch that this commit settles has ended, where that is the stream's own affair. */
  ended: BatchEnd | undefined;
  /** Answered `ack` by `onUnknownStale`. */
  readonly unknownStale: Delivery[];
  /** Numbers that this commit counts as done. */
  drained: number;
};

export const newDraft = ({ state, progress }: Situation): Draft => ({
  state,
  fields: {},
  isOwner: progress !== undefined && state.lease?.owner === progress.owner,
  create: new Map(),
  remove: new Map(),
  answers: [],
  ended: undefined,
  unknownStale: [],
  drained: 0,
});

export function addToCommit(draft: Draft, fields: StreamFields, nowMs: number): void {
  draft.fields = { ...draft.fields, ...fields };
  draft.state = applyPatch(draft.state, fields, nowMs);
}

export const isWritten = ({ fields, create, remove }: Draft): boolean =>
  Object.keys(fields).length > 0 || create.size > 0 || remove.size > 0;

/** The held message of a number as the commit will leave it. */
export function heldAt(
  { create, remove }: Draft,
  view: HeldView,
  number: number,
): ReturnType<HeldView['at']> {
  return create.get(number) ?? (remove.has(number) ? 'absent' : view.at(number));
}

/** The first held number behind `last` as the commit will leave it. */
export function firstHeld({ create, remove, state }: Draft, view: HeldView): ReturnType<HeldView['first']> {
  let from = state.last + 1;
  while (remove.has(from)) from += 1;
  const known = view.first(from);
  const created = Math.min(...create.keys());
  if (known === 'unknown') return created === from ? created : 'unknown';
  if (known === 'none') return created === Infinity ? 'none' : created;
  return Math.min(known, created);
}

export const look = (view: HeldView, number: number, pageSize: number): Need => ({
  kind: 'look',
  pages: [view.pageAt(number, pageSize)],
});
