/** What the control API of a stack answers, path by path. */
import { answerFaults, type Faults } from '../faults/index.ts';
import type { RestAnswer } from '../rest-error.ts';
import { answerClock } from './clock-api.ts';
import type { Closers } from './closers.ts';
import type { Handle } from './control.ts';
import type { NotServed } from './not-served.ts';
import { pubsubRest } from './rest.ts';
import type { Servers } from './servers.ts';
import { UnsupportedError } from './services.ts';
import type { StackClock } from './stack-clock.ts';
import { assertFaultsOf } from './stack-faults.ts';
import { answerState, type StatePorts } from './state-api.ts';

export type HandlePorts = StatePorts &
  Readonly<{
    clock: StackClock;
    faults: Faults;
    servers: Servers;
    notServed: Pick<NotServed, 'answer'>;
    /** The public half of the key that signs the stack's OIDC tokens. */
    jwks: () => unknown;
    closers: Pick<Closers, 'add'>;
  }>;

/** The arguments of `startControl`. */
export function controlHandles({
  clock,
  faults,
  servers,
  notServed,
  jwks,
  closers,
  ...state
}: HandlePorts): readonly [readonly Handle[], Readonly<Record<string, () => unknown>>] {
  const { pubsub, tasks } = servers;
  const rest = pubsub === undefined ? undefined : pubsubRest(pubsub.address);
  closers.add(async () => rest?.close());
  const handles: readonly Handle[] = [
    (method, path, _, body) => answerState(state, method, path, body),
    (method, path, _, body) => answerClock(clock, method, path, body),
    async (method, path, _, body) => faultsRefused(servers, method, path, body),
    async (method, path, query, body) => answerFaults(faults, method, path, query, body),
    async (method, path, _, body) => rest?.handle(method, path, body),
    async (method, path, query, body) => tasks?.rest?.(method, path, query, body),
    async (method, path) => notServed.answer(servers, method, path),
  ];
  return [handles, { '/oidc/jwks': jwks }];
}

/** A plan for a service that is not this stack's; whatever else is wrong with it is answered by the faults themselves. */
function faultsRefused(servers: Servers, method: string, path: string, body: Buffer): RestAnswer | undefined {
  if (method !== 'POST' || path !== '/faults') return undefined;
  try {
    assertFaultsOf(servers, JSON.parse(body.toString('utf8')));
  } catch (error) {
    if (error instanceof UnsupportedError) return { status: 501, body: { error: error.message } };
  }
  return undefined;
}
