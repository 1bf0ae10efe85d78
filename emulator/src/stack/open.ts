/**
 * Puts a stack together: servers, clock, control API, and whatever an extension adds. Everything that goes wrong on the
 * way closes what had been started.
 */
import { createFaults } from '../faults/index.ts';
import { checkTriggers } from '../firestore/triggers.ts';
import { identity } from '../identity.ts';
import { movableClock } from '../movable-clock.ts';
import { quiet } from '../quiet.ts';
import { applySeed } from '../seed/apply.ts';
import { type Closers, closers as closersOf } from './closers.ts';
import { startControl } from './control.ts';
import { controlHandles } from './control-handles.ts';
import { holding } from './holding.ts';
import { notServed } from './not-served.ts';
import { startServers } from './servers.ts';
import { DEFAULT_PROJECT, portsOf } from './services.ts';
import { type SavedStack, StateError } from './saved-stack.ts';
import type { Stack } from './stack.ts';
import { realTimeOnly, stackClock } from './stack-clock.ts';
import { stackFaults } from './stack-faults.ts';
import { chosenServices, type StackOptions } from './stack-options.ts';
import { stateOf } from './state.ts';

/** What lives beside the servers and on their clock. */
export type Extension = Readonly<{
  /** Shown beside the stack's own. */
  addresses: object;
  /** Added to what is saved. */
  saved: object;
  /** Makes what is to be loaded fit. */
  adopt(saved: SavedStack): SavedStack;
  /** Why nothing can be saved, loaded or reset, if so. */
  unsavable?: string;
  /** Called when the servers and the control API listen; what it starts it adds to `closers` at once. */
  start(addresses: Stack['addresses'], closers: Closers): Promise<Extended>;
}>;

export type Extended = Readonly<{
  /** Requests that it has sent and that are not answered. */
  inFlight(): number;
  /** Awaited at the end of each move of the clock. */
  afterMove(): Promise<void>;
  /** Awaited when a state has been loaded at the start. */
  afterLoad(): Promise<void>;
  /** Whether none of its programs still works on a request, be its sender there or not. */
  isIdle(): Promise<boolean>;
}>;

const ALONE: Extended = {
  inFlight: () => 0,
  afterMove: async () => undefined,
  afterLoad: async () => undefined,
  isIdle: async () => true,
};

export async function openStack(options: StackOptions, extension?: Extension): Promise<Stack> {
  const services = chosenServices(options);
  const { caller, state, log = () => undefined, official = false, external = {}, portBase } = options;
  const seed = options.project === undefined ? options.seed : options.seed?.in(options.project);
  const ports = portsOf(options.ports, portBase);
  const faults = createFaults({ log });
  // What is wrong with it is reported before anything has started; it is set when all is ready.
  if (options.faults !== undefined) faults.set(options.faults);
  faults.clear();
  const triggers = [...(options.triggers ?? []), ...(seed?.triggers ?? [])];
  checkTriggers(triggers);
  const project = options.project ?? seed?.project ?? DEFAULT_PROJECT;
  const closers = closersOf();
  const { close } = closers;
  try {
    let isReady = false;
    let extended = ALONE;
    let inFlight = (): number => 0;
    const movable = movableClock(() => quiet(() => inFlight()));
    closers.add(async () => movable.close());
    const signer = identity(movable);
    const servers = await startServers(
      {
        services,
        ports,
        clock: movable,
        identity: signer,
        faults,
        log,
        firestore: {
          ttl: [...(options.ttl ?? []), ...(seed?.ttl ?? [])],
          indexes: { ...(seed?.indexes && { definitions: seed.indexes }), ...options.indexes },
          triggers: () => (isReady ? triggers : []),
        },
        maxTaskBytes: options.maxTaskBytes,
        appEngine: options.appEngine,
        // What the stack itself creates is the project's owner's.
        caller: caller === undefined ? undefined : () => (isReady ? caller : undefined),
        remoteTargets: options.remoteTargets ?? false,
        official,
        external,
      },
      closers,
    );
    inFlight = () =>
      Object.values(servers).reduce((sum, { own }) => sum + (own?.inFlight() ?? 0), extended.inFlight());
    const foreign = Object.values(servers).some(({ own }) => own === undefined);
    const clock = foreign
      ? realTimeOnly(movable, 'Google’s emulators have clocks of their own')
      : stackClock(movable, () => extended.afterMove());
    const held = holding({
      servers,
      movable,
      faults,
      extension,
      inFlight,
      isIdle: () => extended.isIdle(),
      log,
    });
    const missing = notServed();
    const parts = {
      clock,
      faults: stackFaults(faults, servers),
      ...held,
      state: () =>
        stateOf({ addresses: () => addresses, clock: movable, servers, notServed: missing, faults }),
    };
    let addresses = {
      ...Object.fromEntries(Object.entries(servers).map(([name, { address }]) => [name, address])),
      ...extension?.addresses,
      project,
    } as Stack['addresses'];
    const control = await closers.started(
      startControl(
        ports.control,
        ...controlHandles({ ...parts, servers, notServed: missing, jwks: signer.jwks, closers }),
      ),
    );
    addresses = { ...addresses, control: control.url };
    if (extension !== undefined) {
      extended = await extension.start(addresses, closers);
      held.atRest();
    }
    if (seed !== undefined) await applySeed(seed, addresses);
    if (state !== undefined) {
      await held.load(state).catch((error: unknown) => {
        throw new StateError(error instanceof Error ? error.message : String(error), { cause: error });
      });
      await extended.afterLoad();
    }
    held.ready();
    isReady = true;
    if (options.faults !== undefined) parts.faults.set(options.faults);
    return { addresses, ...parts, close };
  } catch (error) {
    await close();
    throw error;
  }
}
