/**
 * Saving, loading and resetting a running stack. Programs of the stack that still work on what was dropped could write
 * into the new state: it is put in place once more when they have ended.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Faults } from '../faults/index.ts';
import type { MovableClock } from '../movable-clock.ts';
import type { Extension } from './open.ts';
import { type Holders, loadAll, parseSaved, resetAll, saveAll, type SavedStack } from './saved-stack.ts';
import type { Servers } from './servers.ts';
import { SERVICES, TITLE, UnsupportedError } from './services.ts';
import type { Stack } from './stack.ts';

export type Holding = Pick<Stack, 'save' | 'load' | 'reset'> &
  Readonly<{
    /** What the stack holds now, with no message in it, is what its programs find while they come to an end. */
    atRest(): void;
    /** What the stack holds now is what a reset brings back. */
    ready(): void;
  }>;

export type HoldingPorts = Readonly<{
  servers: Servers;
  movable: MovableClock;
  faults: Pick<Faults, 'clear' | 'up'>;
  /** See open.ts. */
  extension: Pick<Extension, 'saved' | 'adopt' | 'unsavable'> | undefined;
  /** Requests that the stack has sent and that are not answered. */
  inFlight: () => number;
  /** Whether none of the stack's programs still works on a request. */
  isIdle: () => Promise<boolean>;
  log: (line: string) => void;
}>;

/** Longer than a function's calls take to fail and be tried again once, on a machine that is far too busy. */
const IDLE_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 5;

export function holding(ports: HoldingPorts): Holding {
  const { servers, movable, faults, extension, inFlight, isIdle, log } = ports;
  const entries = Object.entries(servers);
  const foreign = SERVICES.find((name) => servers[name] !== undefined && servers[name].own === undefined);
  const refusal =
    foreign === undefined ? extension?.unsavable : `${TITLE[foreign]} is not a server of this package`;
  const holders: Holders = Object.fromEntries(entries.map(([name, { own }]) => [name, own]));
  const saveHere = (): SavedStack => ({ ...saveAll(holders, movable.now()), ...extension?.saved });
  let empty = refusal === undefined ? saveHere() : undefined;
  let baseline: SavedStack | undefined;

  const assertPossible = (what: string): SavedStack => {
    if (empty !== undefined) return empty;
    throw new UnsupportedError(`${what} is not possible: ${refusal}`);
  };

  const isClean = async (): Promise<boolean> => (await isIdle()) && inFlight() === 0;

  /** Nothing is in flight, here or in a program, when `replace` was called for the last time. */
  async function replaced(replace: () => Promise<void>, standard: SavedStack): Promise<void> {
    const clean = await isClean();
    await replace();
    if (clean) return;
    // With nothing more to work on the programs come to an end soon.
    const end = performance.now() + IDLE_LIMIT_MS;
    do {
      await resetAll(holders, movable, standard);
      await wait(LOOK_EVERY_MS);
    } while (!(await isClean()) && performance.now() < end);
    if (!(await isIdle()))
      log('a program of the stack still works on what it was sent before the state was replaced');
    await replace();
  }

  return {
    save() {
      assertPossible('saving');
      return saveHere();
    },
    async load(saved) {
      const standard = assertPossible('loading');
      const parsed = parseSaved(saved, holders);
      const fitting = extension?.adopt(parsed) ?? parsed;
      await replaced(() => loadAll(holders, movable, fitting, standard), standard);
    },
    async reset() {
      const standard = assertPossible('a reset');
      faults.clear();
      await replaced(() => resetAll(holders, movable, baseline ?? standard), standard);
      // With this state, not with the one before.
      await faults.up();
      movable.resume();
    },
    atRest() {
      if (empty !== undefined) empty = saveHere();
    },
    ready() {
      if (empty !== undefined) baseline = saveHere();
    },
  };
}
