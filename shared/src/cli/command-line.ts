/**
 * The command line of `pubsub-guarantees`: what it asks for, or an error of one line. Pure.
 */
import { parseArgs } from 'node:util';
import { type Environment, firestoreNames, fullName, optional, project } from '../environment.ts';
import { textOf } from '../errors.ts';
import { OUTBOX_HELP, type OutboxCommand, outboxCommand } from './outbox-command.ts';
import { STREAMS_HELP, type StreamsCommand, streamsCommand } from './streams-command.ts';
import { collectionOf, CommandLineError } from './usage.ts';

export const HELP = `Usage: pubsub-guarantees streams|outbox <command> [options]

${STREAMS_HELP}

${OUTBOX_HELP}

Everywhere:

  --project ID                    default: GOOGLE_CLOUD_PROJECT
  --database ID                   of Firestore; default: FIRESTORE_DATABASE, or (default)
  --json                          one JSON object
  --help

FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST are respected.
Exit code 0: done; 1: refused or failed; 2: the command line is wrong.`;

type Common = Readonly<{ project: string; database: string; json: boolean }>;

export type StreamsLine = Common &
  Readonly<{
    area: 'streams';
    command: StreamsCommand;
    collection: string;
    /** Where large messages wait. */
    payloadCollection: string;
    consumer: string;
    /** Empty for a list, and where streams span all sources. */
    source: string;
    scope: 'source' | 'consumer';
    deadLetterTopic?: string;
  }>;

export type OutboxLine = Common &
  Readonly<{
    area: 'outbox';
    command: OutboxCommand;
    rows: string;
    streams: string;
    counters: string;
    scope?: string;
  }>;

export type CommandLine = StreamsLine | OutboxLine;

const OPTIONS = {
  consumer: { type: 'string' },
  source: { type: 'string' },
  scope: { type: 'string' },
  project: { type: 'string' },
  database: { type: 'string' },
  collection: { type: 'string' },
  state: { type: 'string' },
  page: { type: 'string' },
  'page-size': { type: 'string' },
  'dead-letter-topic': { type: 'string' },
  epoch: { type: 'string' },
  counters: { type: 'string' },
  'counter-scope': { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Of one area alone: another has nothing to do with them. */
const OWN = {
  streams: ['consumer', 'source', 'scope', 'state', 'page', 'dead-letter-topic'],
  outbox: ['epoch', 'counters', 'counter-scope'],
} as const;

/** Throws CommandLineError. */
export function readCommandLine(args: readonly string[], environment: Environment): CommandLine | 'help' {
  try {
    return read(args, environment);
  } catch (error) {
    if (error instanceof CommandLineError) throw error;
    // The text of the parser has a hint behind it, on lines of their own.
    throw new CommandLineError(textOf(error).split('\n')[0] ?? '');
  }
}

type Values = ReturnType<typeof parsed>['values'];

const parsed = (args: readonly string[]) =>
  parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS });

function read(args: readonly string[], environment: Environment): CommandLine | 'help' {
  const { values, positionals } = parsed(args);
  if (values.help === true) return 'help';
  const [area, ...rest] = positionals;
  if (area !== 'streams' && area !== 'outbox') {
    const text = `the command is ${JSON.stringify(area ?? '')}; accepted: streams, outbox (see --help)`;
    throw new CommandLineError(text);
  }
  const foreign = OWN[area === 'streams' ? 'outbox' : 'streams'].find((name) => values[name] !== undefined);
  if (foreign !== undefined) throw new CommandLineError(`--${foreign} is no option of ${area}; see --help`);
  const from: Environment = {
    ...environment,
    ...(values.project !== undefined && { GOOGLE_CLOUD_PROJECT: values.project }),
    ...(values.database !== undefined && { FIRESTORE_DATABASE: values.database }),
  };
  return area === 'streams' ? streamsLine(rest, values, from) : outboxLine(rest, values, from);
}

function common(values: Values, from: Environment): Common {
  return { project: project(from), database: firestoreNames(from).database, json: values.json === true };
}

function streamsLine(operands: readonly string[], values: Values, from: Environment): StreamsLine {
  const command = streamsCommand(operands, values);
  const shared = common(values, from);
  const { collectionPrefix } = firestoreNames(from);
  const consumer = values.consumer ?? optional(from, 'CONSUMER');
  if (consumer === undefined)
    throw new CommandLineError('--consumer is not given; accepted: whose streams these are');
  const scope = values.scope ?? optional(from, 'ORDER_SCOPE') ?? 'source';
  if (scope !== 'source' && scope !== 'consumer')
    throw new CommandLineError(`--scope is ${JSON.stringify(scope)}; accepted: source, consumer`);
  const topic = values['dead-letter-topic'] ?? optional(from, 'DEAD_LETTER_TOPIC');
  return {
    area: 'streams',
    command,
    ...shared,
    collection: collectionOf('--collection', values.collection ?? `${collectionPrefix}-order`),
    payloadCollection: `${collectionPrefix}-payload`,
    consumer,
    source: command.kind === 'list' || scope === 'consumer' ? '' : sourceOf(shared.project, values, from),
    scope,
    ...(topic !== undefined && {
      deadLetterTopic: fullName(shared.project, 'topics', '--dead-letter-topic', topic),
    }),
  };
}

/** As it is given: the receivers of the library name their sources themselves. The functions use full names. */
function sourceOf(projectId: string, values: Values, from: Environment): string {
  if (values.source !== undefined && values.source !== '') return values.source;
  const configured = optional(from, 'SOURCE_SUBSCRIPTION');
  if (configured !== undefined)
    return fullName(projectId, 'subscriptions', 'SOURCE_SUBSCRIPTION', configured);
  throw new CommandLineError(
    '--source is not given; accepted: the subscription, as `streams list` shows it, or --scope consumer',
  );
}

function outboxLine(operands: readonly string[], values: Values, from: Environment): OutboxLine {
  const command = outboxCommand(operands, values);
  const shared = common(values, from);
  const { collectionPrefix } = firestoreNames(from);
  const collection = collectionOf('--collection', values.collection ?? `${collectionPrefix}-outbox`);
  const scope = values['counter-scope'] ?? optional(from, 'COUNTER_SCOPE');
  return {
    area: 'outbox',
    command,
    ...shared,
    rows: `${collection}-rows`,
    streams: `${collection}-streams`,
    counters: collectionOf('--counters', values.counters ?? `${collectionPrefix}-counters`),
    ...(scope !== undefined && { scope }),
  };
}
