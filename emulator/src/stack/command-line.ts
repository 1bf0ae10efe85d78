/** The command line: what it asks for, or an error of one line that names the option or the place in a file. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { HELP, TOOLKIT_HELP } from './help.ts';
import { pathOf, readFaults, readIndexes, readSeed, readJson } from './input-files.ts';
import { asOption, given, OptionError } from './option.ts';
import {
  DEFAULT_PORT_BASE,
  LISTENERS,
  type PortOptions,
  portsOf,
  projectOf,
  SERVICES,
  type Service,
} from './services.ts';
import { assertCaller, type StackOptions } from './stack-options.ts';
import type { ToolkitOptions } from './toolkit.ts';
import { PORT_COUNT } from './topology.ts';

export type CommandLine = Readonly<{
  /** What to start: the servers alone, or the whole toolkit. */
  start:
    | Readonly<{ kind: 'stack'; options: StackOptions }>
    | Readonly<{ kind: 'toolkit'; options: ToolkitOptions }>;
  /** To be printed instead. */
  text?: 'help' | 'version' | 'environment';
  help: string;
  json: boolean;
  quiet: boolean;
  load?: string;
  faults?: string;
  save?: string;
  writeEnv?: string;
  /** To be run beside the stack; empty: none. */
  command: readonly string[];
}>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws an OptionError. Reads the files that are named. */
export function readCommandLine(args: readonly string[], environment: Environment): CommandLine {
  const end = args.indexOf('--');
  const values = parse(end < 0 ? args : args.slice(0, end));
  const command = end < 0 ? [] : args.slice(end + 1);
  if (end >= 0 && command.length === 0) throw new OptionError('there is no command behind --');
  if (end >= 0 && values['print-env']) throw new OptionError('--print-env starts nothing, and so no command');
  const common = {
    help: values.toolkit ? TOOLKIT_HELP : HELP,
    json: values.json,
    quiet: values.quiet,
    command,
    ...given('load', values.load),
    ...given('faults', values.faults),
    ...given('save', values.save),
    ...given('writeEnv', values['write-env']),
  };
  if (values.help || values.version) {
    const text = values.help ? 'help' : 'version';
    return { ...common, text, start: { kind: 'stack', options: {} } };
  }
  return {
    ...common,
    ...(values['print-env'] && { text: 'environment' as const }),
    start: values.toolkit
      ? { kind: 'toolkit', options: toolkitOptions(values, environment) }
      : { kind: 'stack', options: stackOptions(values, environment) },
  };
}

type Values = ReturnType<typeof parse>;

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        toolkit: flag,
        services: text,
        project: text,
        'port-base': text,
        'pubsub-port': text,
        'firestore-port': text,
        'tasks-port': text,
        'control-port': text,
        seed: text,
        load: text,
        save: text,
        faults: text,
        indexes: text,
        'index-file': text,
        official: flag,
        external: flag,
        store: text,
        'redis-url': text,
        caller: text,
        sagas: text,
        'outbox-trigger': flag,
        jobs: flag,
        'remote-targets': flag,
        'write-env': text,
        'print-env': flag,
        json: flag,
        quiet: flag,
        help: { ...flag, short: 'h' },
        version: flag,
      },
    });
    const empty = Object.entries(values).find(([, value]) => value === '');
    if (empty !== undefined) throw new Error(`--${empty[0]} is empty`);
    return values;
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split(/\.(?:\s|$)|\n/);
    throw new OptionError(`${line}; --help lists what is accepted (with npm start: npm start -- --help)`);
  }
}

function stackOptions(values: Values, environment: Environment): StackOptions {
  refuse(values, ['store', 'redis-url', 'sagas'], 'is for the toolkit: npm start');
  if (values['outbox-trigger']) throw new OptionError('--outbox-trigger is for the toolkit: npm start');
  if (values.jobs) throw new OptionError('--jobs is for the toolkit: npm start');
  if (values.seed !== undefined) refuse(values, ['load'], 'is not possible together with --seed');
  const { services: list, project } = values;
  const services = list === undefined ? undefined : servicesOf(list);
  return {
    ...shared(values, environment, LISTENERS.length),
    ...given('caller', callerOf(values.caller)),
    ...given('services', services),
    ...given('project', project === undefined ? undefined : asOption(() => projectOf(project, '--project'))),
    ...given('seed', values.seed === undefined ? undefined : readSeed(values.seed)),
  };
}

function toolkitOptions(values: Values, environment: Environment): ToolkitOptions {
  refuse(
    values,
    ['services', 'project', 'seed', 'caller'],
    'is not for the toolkit, which has a topology of its own',
  );
  const { store = 'firestore', 'redis-url': redisUrl } = values;
  if (store !== 'firestore' && store !== 'redis') {
    throw new OptionError(`--store is ${JSON.stringify(store)}; accepted: firestore, redis`);
  }
  if (store === 'redis') refuse(values, ['load', 'save'], 'is not possible with --store redis');
  else refuse(values, ['redis-url'], 'is only for --store redis');
  if (values.jobs) refuse(values, ['load', 'save'], 'is not possible with --jobs');
  return {
    ...shared(values, environment, PORT_COUNT),
    store,
    outboxTrigger: values['outbox-trigger'],
    jobs: values.jobs,
    ...given('redisUrl', redisUrl),
    ...given('sagas', values.sagas === undefined ? undefined : sagasIn(pathOf(values.sagas))),
  };
}

/** It is loaded by the function `saga`, whose end would say less than this. */
function sagasIn(path: string): string {
  if (existsSync(path)) return path;
  throw new OptionError(`--sagas is ${JSON.stringify(path)}, which is not there; accepted: a file`);
}

function shared(values: Values, environment: Environment, count: number) {
  const { official, external, indexes } = values;
  if (official && external) throw new OptionError('--external is not possible together with --official');
  if (official || external) {
    refuse(
      values,
      ['load', 'save', 'caller'],
      `is not possible with ${official ? '--official' : '--external'}`,
    );
  }
  if (values['outbox-trigger'] && (official || external)) {
    throw new OptionError(`--outbox-trigger is not possible with ${official ? '--official' : '--external'}`);
  }
  const mode = INDEX_MODES.find((known) => known === indexes);
  if (indexes !== undefined && mode === undefined) {
    throw new OptionError(`--indexes is ${JSON.stringify(indexes)}; accepted: ${INDEX_MODES.join(', ')}`);
  }
  const definitions = values['index-file'] === undefined ? undefined : readIndexes(values['index-file']);
  const base = portOf('port-base', values['port-base'], 65_536 - count) ?? DEFAULT_PORT_BASE;
  const ports: PortOptions = Object.fromEntries(
    LISTENERS.flatMap((name) => {
      const port = portOf(`${name}-port`, values[`${name}-port`], 65_535);
      return port === undefined ? [] : [[name, port] as const];
    }),
  );
  const portBase = base === 0 ? undefined : base;
  asOption(() => portsOf(ports, portBase));
  return {
    ...given('portBase', portBase),
    ports,
    official,
    remoteTargets: values['remote-targets'],
    ...(external && { external: externalOf(environment) }),
    indexes: { ...given('mode', mode), ...given('definitions', definitions) },
    ...given('state', values.load === undefined ? undefined : readJson(values.load)),
    ...given('faults', values.faults === undefined ? undefined : readFaults(values.faults)),
  };
}

function callerOf(caller: string | undefined): string | undefined {
  if (caller !== undefined) asOption(() => assertCaller(caller));
  return caller;
}

const INDEX_MODES = ['warn', 'enforce', 'off'] as const;

function externalOf(environment: Environment): NonNullable<StackOptions['external']> {
  const { PUBSUB_EMULATOR_HOST: pubsub, FIRESTORE_EMULATOR_HOST: firestore } = environment;
  if (!pubsub && !firestore) {
    throw new OptionError('--external needs PUBSUB_EMULATOR_HOST or FIRESTORE_EMULATOR_HOST; neither is set');
  }
  return { ...(pubsub && { pubsub }), ...(firestore && { firestore }) };
}

function servicesOf(list: string): readonly Service[] {
  return list.split(',').map((name) => {
    const service = SERVICES.find((known) => known === name);
    if (service !== undefined) return service;
    throw new OptionError(
      `--services is ${JSON.stringify(list)}; accepted: ${SERVICES.join(',')} or some of them`,
    );
  });
}

function portOf(name: string, text: string | undefined, highest: number): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && (port === 0 || port >= 1_024) && port <= highest) return port;
  throw new OptionError(
    `--${name} is ${JSON.stringify(text)}; accepted: a whole number from 1024 to ${highest}, or 0`,
  );
}

function refuse(values: Values, names: readonly (keyof Values)[], reason: string): void {
  const used = names.find((name) => values[name] !== undefined);
  if (used !== undefined) throw new OptionError(`--${used} ${reason}`);
}
