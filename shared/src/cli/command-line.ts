/**
 * The command line of `pubsub-guarantees`: what it asks for, or an error of one line. Pure.
 */
import { parseArgs } from 'node:util';
import { type Environment, firestoreNames, fullName, optional, project } from '../environment.ts';
import { textOf } from '../errors.ts';
import type { ListedState } from '../order/order-store.ts';

export const HELP = `Usage: pubsub-guarantees orders <command> [options]

Ordered streams of one consumer, in Firestore.

  orders list [--state STATE]     any (default), waiting, halted, ready
  orders inspect KEY              last, next, held, gap, poison, lease of one stream
  orders resume KEY               a stream that stands still tries its number again
  orders skip KEY NUMBER          gives up what the stream waits for, up to NUMBER

  --consumer NAME                 whose streams (default: CONSUMER)
  --project ID                    default: GOOGLE_CLOUD_PROJECT
  --database ID                   default: FIRESTORE_DATABASE, or (default)
  --collection NAME               default: COLLECTION_PREFIX-order, or pubsub-guarantees-order
  --dead-letter-topic TOPIC       where skip puts a message at which its stream stands still (default: DEAD_LETTER_TOPIC)
  --page TOKEN                    the next page of a list, as the page before names it
  --page-size N                   1 to 500 (default 100)
  --json                          one JSON object
  --help

FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST are respected.
Exit code 0: done; 1: refused or failed; 2: the command line is wrong.`;

/** One line, and exit code 2. */
export class CommandLineError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CommandLineError';
  }
}

export type OrdersCommand =
  | Readonly<{ kind: 'list'; state: ListedState; pageSize: number; page?: string }>
  | Readonly<{ kind: 'inspect' | 'resume'; key: string }>
  | Readonly<{ kind: 'skip'; key: string; number: number }>;

export type CommandLine = Readonly<{
  command: OrdersCommand;
  project: string;
  database: string;
  collection: string;
  /** Where large messages wait. */
  payloadCollection: string;
  consumer: string;
  deadLetterTopic?: string;
  json: boolean;
}>;

const STATES: readonly ListedState[] = ['any', 'waiting', 'halted', 'ready'];

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

function read(args: readonly string[], environment: Environment): CommandLine | 'help' {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      consumer: { type: 'string' },
      project: { type: 'string' },
      database: { type: 'string' },
      collection: { type: 'string' },
      state: { type: 'string' },
      page: { type: 'string' },
      'page-size': { type: 'string' },
      'dead-letter-topic': { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const [area, ...rest] = positionals;
  if (area !== 'orders') {
    throw new CommandLineError(`the command is ${JSON.stringify(area ?? '')}; accepted: orders (see --help)`);
  }
  const command = commandOf(rest, values);
  const from: Environment = {
    ...environment,
    ...(values.project !== undefined && { GOOGLE_CLOUD_PROJECT: values.project }),
    ...(values.database !== undefined && { FIRESTORE_DATABASE: values.database }),
  };
  const projectId = project(from);
  const { database, collectionPrefix } = firestoreNames(from);
  const consumer = values.consumer ?? optional(environment, 'CONSUMER');
  if (consumer === undefined)
    throw new CommandLineError('--consumer is not given; accepted: whose streams these are');
  const topic = values['dead-letter-topic'] ?? optional(environment, 'DEAD_LETTER_TOPIC');
  const collection = values.collection ?? `${collectionPrefix}-order`;
  if (!/^[A-Za-z][A-Za-z0-9-]{0,120}$/.test(collection)) {
    throw new CommandLineError(
      `--collection is ${JSON.stringify(collection)}; accepted: letters, digits and hyphens`,
    );
  }
  return {
    command,
    project: projectId,
    database,
    collection,
    payloadCollection: `${collectionPrefix}-payload`,
    consumer,
    ...(topic !== undefined && {
      deadLetterTopic: fullName(projectId, 'topics', '--dead-letter-topic', topic),
    }),
    json: values.json,
  };
}

type Values = Readonly<{ state?: string; page?: string; 'page-size'?: string }>;

function commandOf([name = '', ...operands]: readonly string[], values: Values): OrdersCommand {
  switch (name) {
    case 'list': {
      counted(operands, 0, 'orders list');
      const { state = 'any', page, 'page-size': size = '100' } = values;
      const known = STATES.find((one) => one === state);
      if (known === undefined) {
        throw new CommandLineError(`--state is ${JSON.stringify(state)}; accepted: ${STATES.join(', ')}`);
      }
      const pageSize = /^\d{1,3}$/.test(size) ? Number(size) : 0;
      if (pageSize < 1 || pageSize > 500) {
        throw new CommandLineError(`--page-size is ${JSON.stringify(size)}; accepted: 1 to 500`);
      }
      return { kind: 'list', state: known, pageSize, ...(page !== undefined && { page }) };
    }
    case 'inspect':
    case 'resume': {
      const [key = ''] = counted(operands, 1, `orders ${name} KEY`);
      return { kind: name, key };
    }
    case 'skip': {
      const [key = '', number = ''] = counted(operands, 2, 'orders skip KEY NUMBER');
      if (!/^[1-9][0-9]{0,15}$/.test(number)) {
        throw new CommandLineError(`NUMBER is ${JSON.stringify(number)}; accepted: a whole number from 1`);
      }
      return { kind: 'skip', key, number: Number(number) };
    }
    default:
      throw new CommandLineError(
        `orders ${JSON.stringify(name)} is no command; accepted: list, inspect, resume, skip`,
      );
  }
}

function counted(operands: readonly string[], count: number, usage: string): readonly string[] {
  if (operands.length === count && operands.every((operand) => operand !== '')) return operands;
  throw new CommandLineError(`the operands do not fit; accepted: ${usage}`);
}
