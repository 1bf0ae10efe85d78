/**
 * A process of the model: between it and its store, its clock and its handler stands what may pause it, with replies on
 * their way, or end it at any await. What it has sent by then is applied all the same; it is never heard of again.
 */
import { getCallSites } from 'node:util';
import type { Clock } from '../../../shared/src/clock.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import type { VirtualClock } from '../../../shared/src/testing/index.ts';
import type { ClaimDocuments } from '../../../shared/src/dedup/document-claims.ts';
import { gate, pausable } from './fixture.ts';

/** Where an await stands, `file.ts:line`, and whether its work is still to be done or is done and not yet heard of. */
type Passing = Readonly<{ site: string; point: 'before' | 'after' }>;

/** `name` has the file, the function and the call. */
export type Place = Passing & Readonly<{ name: string; call: Call }>;

/** Frames of the stack from a port to whoever calls it: no more than it takes, for they are dear. */
const FRAMES: Readonly<Partial<Record<Call, number>>> = { sleep: 6, 'await next': 10 };
const FRAMES_OF_DOCUMENTS = 4;

export type Mortal = Readonly<{
  clock: Clock;
  /** The same, for timers that bound a call: nothing waits at them. */
  guardClock: Clock;
  documents: ClaimDocuments;
  handler: Handler;
  /** Pausing for ever is dying between two awaits. */
  pause(milliseconds: number | 'for ever'): void;
}>;

export type Call = 'sleep' | 'await next' | `documents.${'create' | 'read' | 'update' | 'remove'}`;

export type Fate = Readonly<{
  /** Whether a process may still die at a call of this kind: to find out from where it was called takes time. */
  isOpen(call: Call): boolean;
  /** Whether it dies here; it is replaced by whoever says so. */
  dies(passing: Passing): boolean;
}>;

export function mortal(clock: VirtualClock, documents: ClaimDocuments, handler: Handler, fate: Fate): Mortal {
  const own = pausable(clock);
  const never = new Promise<never>(() => {});
  let resumed: Promise<void> = Promise.resolve();

  const die = (): void => {
    own.pause();
    resumed = never;
  };
  const pass = (site: string | undefined, point: Passing['point']): void => {
    if (site === undefined || resumed === never) return;
    if (fate.dies({ site, point })) die();
  };
  /** Paused again while it wakes, it waits again. */
  const awake = async (): Promise<void> => {
    for (let waited: unknown; waited !== resumed; await resumed) waited = resumed;
  };
  const guarded = async <Value>(kind: Call, call: () => Promise<Value>): Promise<Value> => {
    const site = fate.isOpen(kind) ? siteOfCaller(kind) : undefined;
    pass(site, 'before');
    await awake();
    const value = await call();
    pass(site, 'after');
    await awake();
    return value;
  };

  return {
    guardClock: own,
    clock: {
      ...own,
      after(milliseconds, callback) {
        if (fate.isOpen('sleep')) pass(siteOfCaller('sleep'), 'before');
        return own.after(milliseconds, callback);
      },
    },
    documents: {
      create: (key, write) => guarded('documents.create', () => documents.create(key, write)),
      read: (key) => guarded('documents.read', () => documents.read(key)),
      update: (key, revision, write) =>
        guarded('documents.update', () => documents.update(key, revision, write)),
      remove: (key, revision) => guarded('documents.remove', () => documents.remove(key, revision)),
      tokenOf: (revision) => documents.tokenOf(revision),
    },
    handler: (message, context) => guarded('await next', () => handler(message, context)),
    pause(milliseconds) {
      if (resumed === never) return;
      if (milliseconds === 'for ever') return die();
      own.pause();
      const { opened, open } = gate();
      resumed = opened;
      clock.after(milliseconds, () => {
        open();
        if (resumed !== opened) return;
        // Replies before timers: what the rules about the clock are for.
        clock.after(0, () => {
          if (resumed === opened) own.resume();
        });
      });
    },
  };
}

/** The innermost line of this folder, whatever of other folders was called on the way; undefined for a guard's timer. */
function siteOfCaller(call: Call): string | undefined {
  for (const { scriptName, lineNumber } of getCallSites(FRAMES[call] ?? FRAMES_OF_DOCUMENTS)) {
    if (scriptName.endsWith('/deadline-signal.ts')) return undefined;
    const file = /\/shared\/src\/dedup\/([\w-]+\.ts)$/.exec(scriptName);
    if (file !== null) return `${file[1]}:${lineNumber}`;
  }
  return undefined;
}
