/**
 * What the toolkit runs beside the servers: the functions and the republisher as processes, the topology that connects
 * them, and the sweep. They end with the stack.
 */
import { randomUUID } from 'node:crypto';
import type { Child } from './child.ts';
import { type ChildSettings, functionChild, republisherChild } from './children.ts';
import type { Closers } from './closers.ts';
import type { Extended } from './open.ts';
import { provision, type ProvisionPorts } from './provision.ts';
import type { Stack } from './stack.ts';
import { startSweeping } from './sweeping.ts';
import { type FunctionName, FUNCTIONS } from './topology.ts';

export type FunctionUrls = Readonly<Record<FunctionName, string>>;

export type Programs = Readonly<{
  functions: Readonly<{
    /** SIGKILL to these, or to all of them, as if their instances had crashed. Resolves when they are gone. */
    kill(...names: readonly FunctionName[]): Promise<void>;
    /** Starts these, or all of them, again where they were. Resolves when they are ready. */
    start(...names: readonly FunctionName[]): Promise<void>;
  }>;
  extended: Extended;
}>;

export type ProgramSettings = Omit<ChildSettings, 'runName'> &
  Pick<ProvisionPorts, 'pushRetryPolicy'> &
  Readonly<{ addresses: Stack['addresses'] }>;

/** Resolves when all of them listen and the topology is there. */
export async function startPrograms(
  settings: ProgramSettings,
  urls: FunctionUrls,
  closers: Closers,
): Promise<Programs> {
  const { addresses, log, pushRetryPolicy } = settings;
  const connect = (): Promise<void> => provision({ addresses, functions: urls, pushRetryPolicy });
  const childSettings = { ...settings, runName: `local-${randomUUID()}` };
  const functions = new Map(FUNCTIONS.map((name) => [name, functionChild(name, childSettings)]));
  const children = [...functions.values(), republisherChild(childSettings)];
  const these = (names: readonly FunctionName[]): readonly Child[] =>
    [...functions].flatMap(([name, each]) => (names.length === 0 || names.includes(name) ? [each] : []));
  closers.add(async () => void (await Promise.all(children.map((child) => child.stop()))));
  await Promise.all([...children.map((child) => child.start()), connect()]);
  const sweeps = startSweeping(urls, log);
  closers.add(() => sweeps.close());
  return {
    functions: {
      kill: async (...names) => void (await Promise.all(these(names).map((child) => child.kill()))),
      start: async (...names) => void (await Promise.all(these(names).map((child) => child.start()))),
    },
    extended: {
      inFlight: () => sweeps.running(),
      // Messages of streams that were to be tried again on the way are tried before a test looks.
      afterMove: () => sweeps.once(),
      // What was loaded may come from a stack without this topology.
      afterLoad: connect,
      isIdle: async () => !(await Promise.all(children.map((child) => child.isIdle()))).includes(false),
    },
  };
}
