/**
 * The commands of `sagas`. Pure.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import type { SagaState } from '../sagas/instance.ts';
import type { SettledOutcome } from '../sagas/operations.ts';
import type { SagaListOptions } from '../sagas/sagas.ts';
import { CommandLineError, checkOperands, noCommand, pageSizeOf } from './usage.ts';

export const SAGAS_HELP = `Sagas of one orchestrator:

  sagas list [--saga NAME] [--state STATE] [--version N] [--older-than DURATION] [--parked]
                                  STATE: running, compensating, completed, compensated (default: all)
  sagas inspect SAGA ID           steps, problems and history of one instance
  sagas cancel SAGA ID            cancels it; answers cancelling, asked (the pivot decides) or tooLate
  sagas retry SAGA ID             sends every open command again, now
  sagas settle SAGA ID STEP OUTCOME --reason TEXT [--reply JSON]
                                  OUTCOME: done, refused, undone; of a parked instance alone

  --consumer NAME                 whose sagas (default: CONSUMER)
  --topic TOPIC                   the orchestrator's, for cancel, retry and settle (default: SAGA_TOPIC)
  --call NAME                     repeats that call: it is applied once, and has the same answer
  --wait DURATION                 for the answer of a call (default 30s)
  --collection NAME               default: COLLECTION_PREFIX-sagas, or pubsub-guarantees-sagas
  --page TOKEN, --page-size N     as for streams`;

type Call = Readonly<{ saga: string; id: string; call?: string }>;

export type SagasCommand =
  | Readonly<{ kind: 'list'; options: SagaListOptions }>
  | Readonly<{ kind: 'inspect'; saga: string; id: string }>
  | (Call & Readonly<{ kind: 'cancel' | 'retry' }>)
  | (Call &
      Readonly<{ kind: 'settle'; step: string; outcome: SettledOutcome; reason: string; reply?: unknown }>);

type Values = Readonly<{
  saga?: string;
  state?: string;
  version?: string;
  'older-than'?: string;
  parked?: boolean;
  page?: string;
  'page-size'?: string;
  call?: string;
  reason?: string;
  reply?: string;
}>;

const STATES: readonly SagaState[] = ['running', 'compensating', 'completed', 'compensated'];
const OUTCOMES: readonly SettledOutcome[] = ['done', 'refused', 'undone'];

/** Throws CommandLineError, also for an option that the command does not have: `list --call` would be ignored. */
export function sagasCommand([name = '', ...operands]: readonly string[], values: Values): SagasCommand {
  switch (name) {
    case 'list':
      checkOperands(operands, 0, 'sagas list');
      only(values, name, ['saga', 'state', 'version', 'older-than', 'parked', 'page', 'page-size']);
      return { kind: 'list', options: listOptions(values) };
    case 'inspect': {
      const [saga = '', id = ''] = checkOperands(operands, 2, 'sagas inspect SAGA ID');
      only(values, name, []);
      return { kind: name, saga, id };
    }
    case 'cancel':
    case 'retry': {
      const [saga = '', id = ''] = checkOperands(operands, 2, `sagas ${name} SAGA ID`);
      only(values, name, ['call']);
      return { kind: name, saga, id, ...callOf(values) };
    }
    case 'settle': {
      const usage = 'sagas settle SAGA ID STEP OUTCOME --reason TEXT';
      const [saga = '', id = '', step = '', said = ''] = checkOperands(operands, 4, usage);
      only(values, name, ['call', 'reason', 'reply']);
      const outcome = oneOf('OUTCOME', said, OUTCOMES);
      const { reason = '', reply } = values;
      if (reason === '') throw new CommandLineError(`--reason is not given; accepted: ${usage}`);
      if (reply !== undefined && outcome !== 'done')
        throw new CommandLineError(`--reply is given with ${outcome}; accepted: only with done`);
      const given = reply === undefined ? {} : { reply: jsonIn(reply) };
      return { kind: name, saga, id, step, outcome, reason, ...given, ...callOf(values) };
    }
    default:
      throw noCommand('sagas', name, 'list, inspect, cancel, retry, settle');
  }
}

function listOptions(values: Values): SagaListOptions {
  const { saga, state, version, parked, page } = values;
  const olderThan = values['older-than'];
  return {
    pageSize: pageSizeOf(values['page-size']),
    ...(saga !== undefined && { saga }),
    ...(state !== undefined && { state: oneOf('--state', state, STATES) }),
    ...(version !== undefined && { version: versionOf(version) }),
    ...(olderThan !== undefined && { olderThan: durationOf('--older-than', olderThan) }),
    ...(parked === true && { parked }),
    ...(page !== undefined && { pageToken: page }),
  };
}

function versionOf(text: string): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text);
  throw new CommandLineError(`--version is ${JSON.stringify(text)}; accepted: a whole number from 1`);
}

export function durationOf(option: string, text: string): Duration {
  try {
    toMilliseconds(text as Duration, option);
    return text as Duration;
  } catch {
    throw new CommandLineError(
      `${option} is ${JSON.stringify(text)}; accepted: a whole number with ms, s, m, h or d`,
    );
  }
}

const callOf = ({ call }: Values): Readonly<{ call?: string }> => (call === undefined ? {} : { call });

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new CommandLineError(`--reply is ${JSON.stringify(text)}; accepted: JSON`);
  }
}

function oneOf<Value extends string>(what: string, text: string, accepted: readonly Value[]): Value {
  const known = accepted.find((one) => one === text);
  if (known !== undefined) return known;
  throw new CommandLineError(`${what} is ${JSON.stringify(text)}; accepted: ${accepted.join(', ')}`);
}

/** Those that some command of the area has, and not this one. */
function only(values: Values, command: string, accepted: readonly (keyof Values)[]): void {
  const all: readonly (keyof Values)[] = [
    ...(['saga', 'state', 'version', 'older-than', 'parked', 'page', 'page-size'] as const),
    ...(['call', 'reason', 'reply'] as const),
  ];
  const foreign = all.find((name) => values[name] !== undefined && !accepted.includes(name));
  if (foreign !== undefined)
    throw new CommandLineError(`--${foreign} is no option of sagas ${command}; see --help`);
}
