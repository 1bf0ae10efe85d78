/**
 * The state of a whole stack as plain JSON data: what each server holds, and the time. Loading replaces all of it or,
 * when something in it is not understood, nothing.
 */
import type { MovableClock } from '../movable-clock.ts';
import { SERVICES, type Service, TITLE } from './services.ts';

export type SavedStack = Readonly<{
  version: 1;
  /** Milliseconds since the epoch, by the stack's clock. */
  now: number;
  pubsub?: object;
  firestore?: object;
  tasks?: object;
  /** Of a toolkit: where its pushes went, so that they go to the functions of the stack that loads it. */
  functions?: Readonly<Record<string, string>>;
}>;

/** The state that a stack was to start from is refused. */
export class StateError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StateError';
  }
}

/**
 * A server, as far as its state goes. `prepare` throws an error of one line, and changes nothing; what it gives puts the
 * state in place, and does not fail.
 */
export type Holder = Readonly<{ save(): object; prepare(saved: unknown): () => void }>;
export type Holders = Readonly<Partial<Record<Service, Holder>>>;

/**
 * The clock goes on from there and never back: a year is left of those that a timestamp of Google's APIs can hold
 * (https://protobuf.dev/reference/protobuf/google.protobuf/#timestamp), and no time is one that a Date cannot.
 */
export const LATEST_MS = Date.UTC(9999, 0, 1);

export function saveAll(holders: Holders, now: number): SavedStack {
  const parts = SERVICES.flatMap((name) => {
    const holder = holders[name];
    return holder === undefined ? [] : [[name, holder.save()] as const];
  });
  return { version: 1, now, ...Object.fromEntries(parts) };
}

/** Throws an error of one line that names the place. A service that is not in it is to be as `empty` has it. */
export function parseSaved(saved: unknown, holders: Holders): SavedStack {
  if (typeof saved !== 'object' || saved === null || Array.isArray(saved)) {
    throw new Error(`the saved state is ${shown(saved)}; accepted: an object as save() gives it`);
  }
  const { version, now, ...parts } = saved as Readonly<Record<string, unknown>>;
  if (version !== 1) throw new Error(`version is ${shown(version)}; accepted: 1`);
  if (typeof now !== 'number' || !(now >= 0 && now <= LATEST_MS)) {
    throw new Error(`now is ${shown(now)}; accepted: milliseconds since the epoch, before the year 9999`);
  }
  for (const [name, part] of Object.entries(parts)) {
    if (typeof part !== 'object' || part === null)
      throw new Error(`${name} is ${shown(part)}; accepted: an object`);
    if (name === 'functions') {
      const [bad, url] = Object.entries(part).find(([, value]) => typeof value !== 'string') ?? [];
      if (bad !== undefined) throw new Error(`functions.${bad} is ${shown(url)}; accepted: a text`);
      continue;
    }
    const service = SERVICES.find((known) => known === name);
    if (service === undefined) {
      throw new Error(`${name} is not known; accepted: version, now, ${SERVICES.join(', ')}, functions`);
    }
    if (holders[service] === undefined) {
      throw new Error(`${name} is state of ${TITLE[service]}, which this stack does not run`);
    }
  }
  return saved as SavedStack;
}

/** What the servers themselves have saved: it is not doubted, and what they hold now is not kept meanwhile. */
export async function resetAll(holders: Holders, clock: MovableClock, saved: SavedStack): Promise<void> {
  await clock.startAt(0, () => {
    for (const name of SERVICES) holders[name]?.prepare(saved[name])();
  });
}

/** Every server prepares its part before any of them changes: rejects as one of them throws, and all is as it was. */
export async function loadAll(
  holders: Holders,
  clock: MovableClock,
  saved: SavedStack,
  empty: SavedStack,
): Promise<void> {
  await clock.startAt(saved.now, () => {
    const applied = SERVICES.flatMap((name) => {
      const holder = holders[name];
      return holder === undefined ? [] : [withPlace(name, () => holder.prepare(saved[name] ?? empty[name]))];
    });
    for (const apply of applied) apply();
  });
}

function withPlace<T>(name: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(text.startsWith(name) ? text : `${name}: ${text}`, { cause: error });
  }
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 100);
