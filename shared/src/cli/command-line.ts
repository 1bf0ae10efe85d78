/**
 * The command line of `pubsub-guarantees`: what it asks for, or an error of one line. Pure.
 */
import { parseArgs } from 'node:util';
import { type Environment, firestoreNames, fullName, optional, project } from '../environment.ts';
import type { Duration } from '../duration.ts';
import { textOf } from '../errors.ts';
import type { CostQuestion } from './cost.ts';
import { COST_HELP, costQuestion } from './cost-command.ts';
import { ERASE_HELP, type EraseCommand, eraseCommand } from './erase-command.ts';
import { JOBS_HELP, JOBS_OPTIONS, type JobsLine, jobsLine } from './jobs-command.ts';
import { OUTBOX_HELP, type OutboxCommand, outboxCommand } from './outbox-command.ts';
import { durationOf, SAGAS_HELP, type SagasCommand, sagasCommand } from './sagas-command.ts';
import { STREAMS_HELP, type StreamsCommand, streamsCommand } from './streams-command.ts';
import { collectionOf, CommandLineError } from './usage.ts';

export const HELP = `Usage: pubsub-guarantees streams|sagas|jobs|outbox|erase|cost <command> [options]

${STREAMS_HELP}

${SAGAS_HELP}

${JOBS_HELP}

${OUTBOX_HELP}

${ERASE_HELP}

${COST_HELP}

Everywhere, the first two except for jobs:

  --project ID                    default: GOOGLE_CLOUD_PROJECT
  --database ID                   of Firestore; default: FIRESTORE_DATABASE, or (default)
  --json                          one JSON object
  --help

FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST are respected.
Exit code 0: done; 1: refused, failed, or not healthy; 2: the command line is wrong.`;

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

export type SagasLine = Common &
  Readonly<{
    area: 'sagas';
    command: SagasCommand;
    collection: string;
    consumer: string;
    /** `projects/…/topics/…`. Absent only where the command reads. */
    topic?: string;
    wait: Duration;
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

export type EraseLine = Common & Readonly<{ area: 'erase'; command: EraseCommand; collection: string }>;

type CostLine = Readonly<{ area: 'cost'; question: CostQuestion; json: boolean }>;

export type CommandLine = StreamsLine | SagasLine | JobsLine | OutboxLine | EraseLine | CostLine;

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
  saga: { type: 'string' },
  version: { type: 'string' },
  'older-than': { type: 'string' },
  parked: { type: 'boolean' },
  topic: { type: 'string' },
  call: { type: 'string' },
  wait: { type: 'string' },
  reason: { type: 'string' },
  reply: { type: 'string' },
  'dedup-id': { type: 'string' },
  'message-id': { type: 'string' },
  subscription: { type: 'string' },
  'dry-run': { type: 'boolean' },
  rate: { type: 'string' },
  size: { type: 'string' },
  once: { type: 'string' },
  later: { type: 'string' },
  order: { type: 'boolean' },
  duplicates: { type: 'string' },
  region: { type: 'string' },
  url: { type: 'string' },
  schema: { type: 'string' },
  role: { type: 'string' },
  backlog: { type: 'string' },
  'backlog-for': { type: 'string' },
  'pick-up-p95': { type: 'string' },
  'snapshot-age': { type: 'string' },
  grant: { type: 'string', multiple: true },
  concurrency: { type: 'string' },
  'direct-url': { type: 'string' },
  epoch: { type: 'string' },
  counters: { type: 'string' },
  'counter-scope': { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Of some areas alone: the others have nothing to do with them. */
const AREAS = {
  streams: ['consumer', 'source', 'scope', 'state', 'page', 'page-size', 'dead-letter-topic', 'collection'],
  sagas: [
    'consumer',
    'saga',
    'state',
    'version',
    'older-than',
    'parked',
    'page',
    'page-size',
    'topic',
    'call',
    'wait',
    'reason',
    'reply',
    'collection',
  ],
  jobs: JOBS_OPTIONS,
  outbox: ['epoch', 'counters', 'counter-scope', 'page-size', 'collection'],
  erase: ['consumer', 'dedup-id', 'message-id', 'subscription', 'dry-run', 'collection'],
  cost: ['rate', 'size', 'once', 'later', 'order', 'duplicates', 'region'],
} as const;
const EVERYWHERE: readonly string[] = ['project', 'database', 'json', 'help'];

const isArea = (name: string | undefined): name is keyof typeof AREAS =>
  name !== undefined && Object.hasOwn(AREAS, name);

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

/** The ID of a row, 43 characters of URL-safe base64, may begin with a hyphen. No option is as long. */
const isRowId = (argument: string): boolean => /^-[\w-]{42}$/.test(argument);

function parsed(args: readonly string[]) {
  const ids = args.filter(isRowId);
  const others = args.filter((argument) => !isRowId(argument));
  const all = ids.length === 0 ? others : [...others, '--', ...ids];
  return parseArgs({ args: all, allowPositionals: true, options: OPTIONS });
}

function read(args: readonly string[], environment: Environment): CommandLine | 'help' {
  const { values, positionals } = parsed(args);
  if (values.help === true) return 'help';
  const [area, ...rest] = positionals;
  if (!isArea(area)) {
    const text = `the command is ${JSON.stringify(area ?? '')}; accepted: ${Object.keys(AREAS).join(', ')} (see --help)`;
    throw new CommandLineError(text);
  }
  const own: readonly string[] = area === 'jobs' ? AREAS.jobs : [...AREAS[area], ...EVERYWHERE];
  const foreign = Object.keys(values).find((name) => !own.includes(name));
  if (foreign !== undefined) throw new CommandLineError(`--${foreign} is no option of ${area}; see --help`);
  if (area === 'cost') {
    return { area, question: costQuestion(rest, values), json: values.json === true };
  }
  if (area === 'jobs') return jobsLine(rest, values, environment);
  const from: Environment = {
    ...environment,
    ...(values.project !== undefined && { GOOGLE_CLOUD_PROJECT: values.project }),
    ...(values.database !== undefined && { FIRESTORE_DATABASE: values.database }),
  };
  if (area === 'erase') return eraseLine(rest, values, from);
  if (area === 'sagas') return sagasLine(rest, values, from);
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

function sagasLine(operands: readonly string[], values: Values, from: Environment): SagasLine {
  const command = sagasCommand(operands, values);
  const shared = common(values, from);
  const { collectionPrefix } = firestoreNames(from);
  const consumer = values.consumer ?? optional(from, 'CONSUMER');
  if (consumer === undefined)
    throw new CommandLineError('--consumer is not given; accepted: the CONSUMER of the orchestrator');
  const topic = values.topic ?? optional(from, 'SAGA_TOPIC');
  const isRead = command.kind === 'list' || command.kind === 'inspect';
  if (topic === undefined && !isRead)
    throw new CommandLineError('--topic is not given; accepted: the topic of the orchestrator');
  return {
    area: 'sagas',
    command,
    ...shared,
    collection: collectionOf('--collection', values.collection ?? `${collectionPrefix}-sagas`),
    consumer,
    ...(topic !== undefined && { topic: fullName(shared.project, 'topics', '--topic', topic) }),
    wait: durationOf('--wait', values.wait ?? '30s'),
  };
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

function eraseLine(operands: readonly string[], values: Values, from: Environment): EraseLine {
  const shared = common(values, from);
  const consumer = values.consumer ?? optional(from, 'CONSUMER');
  if (consumer === undefined)
    throw new CommandLineError('--consumer is not given; accepted: the CONSUMER of the function');
  const source = values.subscription ?? optional(from, 'SOURCE_SUBSCRIPTION');
  if (source === undefined)
    throw new CommandLineError('--subscription is not given; accepted: the subscription of the function');
  const subscription = fullName(shared.project, 'subscriptions', '--subscription', source);
  const { collectionPrefix } = firestoreNames(from);
  return {
    area: 'erase',
    command: eraseCommand(operands, values, { consumer, subscription }),
    ...shared,
    collection: collectionOf('--collection', values.collection ?? `${collectionPrefix}-claims`),
  };
}
