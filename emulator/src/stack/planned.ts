/** Where a stack would listen, without starting it. */
import type { CommandLine } from './command-line.ts';
import type { EnvironmentSource } from './environment.ts';
import { OptionError } from './option.ts';
import { DEFAULT_PROJECT, portsOf, SERVICES } from './services.ts';

/** Throws an OptionError where that is not known before it has started. */
export function planned({ start }: CommandLine): EnvironmentSource {
  const { portBase, ports: given, external = {} } = start.options;
  const stack = start.kind === 'stack' ? start.options : {};
  const ports = portsOf(given, portBase);
  const chosen: readonly string[] = stack.services ?? SERVICES;
  if (start.kind === 'toolkit' && start.options.jobs === true)
    throw new OptionError(
      '--print-env is not possible with --jobs: the port of Postgres is any that is free',
    );
  const addressOf = (name: keyof typeof ports): string => {
    if (ports[name] !== 0) return `127.0.0.1:${ports[name]}`;
    throw new OptionError(`--print-env needs fixed ports: that of ${name} is any that is free`);
  };
  const serviceOf = (name: (typeof SERVICES)[number]): string | undefined =>
    chosen.includes(name) ? addressOf(name) : undefined;
  return {
    pubsub: external.pubsub ?? serviceOf('pubsub'),
    firestore: external.firestore ?? serviceOf('firestore'),
    tasks: serviceOf('tasks'),
    control: `http://${addressOf('control')}`,
    project: stack.project ?? stack.seed?.project ?? DEFAULT_PROJECT,
  };
}
