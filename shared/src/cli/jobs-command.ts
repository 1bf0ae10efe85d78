/**
 * The commands of `jobs`, and where their tables are. Pure.
 */
import type { Environment } from '../environment.ts';
import { optional } from '../environment.ts';
import type { HealthOptions } from '../jobs/health.ts';
import type { JobListQuery, UnfinishedState } from '../jobs/job-views.ts';
import { durationOf } from './sagas-command.ts';
import { CommandLineError, checkOperands, noCommand, pageSizeOf } from './usage.ts';

export const JOBS_HELP = `Jobs in Postgres:

  jobs list [--role ROLE] [--state STATE]
                                  those that have not ended, newest first; STATE: ready, running, waiting (default: all)
  jobs show ID                    one job in whatever state: payload, lease, last error, ends
  jobs cancel ID                  answers cancelled, requested (it runs, and is told) or tooLate
  jobs dead [--role ROLE]         newest first, each with its reason
  jobs relaunch ID …              dead jobs run again, as new but under their ID and key
  jobs discard ID …               dead jobs are gone for good
  jobs health                     backlog, time until a start, old snapshots; exit code 1 where there is a problem
  jobs tidy                       deletes what has expired, as workers do each minute
  jobs migrate                    makes the tables, or brings them to this version
  jobs work MODULE                works the roles that the module exports, until SIGTERM or Ctrl-C

  --url URL                       postgresql://user@host:5432/database (default: DATABASE_URL, or else PGHOST and the like)
  --schema NAME                   of the tables (default jobs)
  --page TOKEN, --page-size N     of list and dead, as for streams
  --backlog N, --backlog-for DURATION, --pick-up-p95 DURATION, --snapshot-age DURATION
                                  what health accepts (default 100, 1h, 5s, 5m)
  --grant ACCOUNT=ROLE,…          of migrate, for each account that owns nothing: the roles that it may work, or *
  --concurrency N                 of work: jobs at once (default: as the module says, or 1)
  --direct-url URL                of work, for wake-ups: the server itself, never a pooler (default: it looks each second)`;

export type JobsCommand =
  | Readonly<{ kind: 'list'; query: JobListQuery }>
  | Readonly<{ kind: 'show' | 'cancel'; id: string }>
  | Readonly<{ kind: 'dead'; role?: string; pageSize: number; page?: string }>
  | Readonly<{ kind: 'relaunch' | 'discard'; ids: readonly string[] }>
  | Readonly<{ kind: 'health'; accepted: HealthOptions }>
  | Readonly<{ kind: 'tidy' }>
  | Readonly<{ kind: 'migrate'; grants: Readonly<Record<string, '*' | readonly string[]>> }>
  | Readonly<{ kind: 'work'; module: string; concurrency?: number; directUrl?: string }>;

export type JobsLine = Readonly<{
  area: 'jobs';
  command: JobsCommand;
  /** Holds a password: never shown. Undefined: the variables of libpq say where Postgres is. */
  url?: string;
  schema: string;
  json: boolean;
}>;

/** Each option with the commands that have it: `list --grant` would be ignored. */
const OPTIONS = {
  role: ['list', 'dead'],
  state: ['list'],
  page: ['list', 'dead'],
  'page-size': ['list', 'dead'],
  backlog: ['health'],
  'backlog-for': ['health'],
  'pick-up-p95': ['health'],
  'snapshot-age': ['health'],
  grant: ['migrate'],
  concurrency: ['work'],
  'direct-url': ['work'],
} as const;

type Name = keyof typeof OPTIONS;
type Values = Readonly<Partial<Record<Exclude<Name, 'grant'> | 'url' | 'schema', string>>> &
  Readonly<{ grant?: readonly string[]; json?: boolean }>;

export const JOBS_OPTIONS: readonly string[] = ['url', 'schema', ...Object.keys(OPTIONS), 'json', 'help'];

const STATES: readonly UnfinishedState[] = ['ready', 'running', 'waiting'];
const COMMANDS = 'list, show, cancel, dead, relaunch, discard, health, tidy, migrate, work';

/** Throws CommandLineError. */
export function jobsLine(operands: readonly string[], values: Values, environment: Environment): JobsLine {
  const command = jobsCommand(operands, values);
  const { schema = 'jobs', json = false } = values;
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(schema))
    throw new CommandLineError(`--schema is ${JSON.stringify(schema)}; accepted: letters, digits and "_"`);
  const url = values.url ?? optional(environment, 'DATABASE_URL');
  if (url === undefined && optional(environment, 'PGHOST') === undefined)
    throw new CommandLineError(`--url is not given; accepted: ${A_URL}, or DATABASE_URL`);
  return { area: 'jobs', command, schema, json, ...(url !== undefined && { url: urlOf('--url', url) }) };
}

const A_URL = 'postgresql://user@host:5432/database';

/** What is refused is not shown: it has a password. */
function urlOf(option: string, text: string): string {
  if (/^postgres(?:ql)?:\/\/\S+$/.test(text) && URL.canParse(text)) return text;
  throw new CommandLineError(`${option} is no URL of Postgres; accepted: ${A_URL}`);
}

function jobsCommand([name = '', ...operands]: readonly string[], values: Values): JobsCommand {
  const foreign = Object.entries(OPTIONS).find(
    ([option, commands]) => values[option as Name] !== undefined && !commands.some((one) => one === name),
  );
  if (COMMANDS.split(', ').includes(name) && foreign !== undefined)
    throw new CommandLineError(`--${foreign[0]} is no option of jobs ${name}; see --help`);
  const { role, page } = values;
  switch (name) {
    case 'list': {
      checkOperands(operands, 0, 'jobs list');
      const state = stateOf(values.state);
      const pageToken = page === undefined ? {} : { pageToken: idOf('--page', page) };
      const pageSize = pageSizeOf(values['page-size']);
      return { kind: name, query: { pageSize, ...pageToken, ...state, ...(role !== undefined && { role }) } };
    }
    case 'dead': {
      checkOperands(operands, 0, 'jobs dead');
      const from = page === undefined ? {} : { page: idOf('--page', page) };
      return {
        kind: name,
        pageSize: pageSizeOf(values['page-size']),
        ...from,
        ...(role !== undefined && { role }),
      };
    }
    case 'show':
    case 'cancel': {
      const [id = ''] = checkOperands(operands, 1, `jobs ${name} ID`);
      return { kind: name, id: idOf('ID', id) };
    }
    case 'relaunch':
    case 'discard':
      if (operands.length === 0) checkOperands(operands, 1, `jobs ${name} ID …`);
      return { kind: name, ids: operands.map((id) => idOf('ID', id)) };
    case 'health':
      checkOperands(operands, 0, 'jobs health');
      return { kind: name, accepted: acceptedOf(values) };
    case 'tidy':
      checkOperands(operands, 0, 'jobs tidy');
      return { kind: name };
    case 'migrate':
      checkOperands(operands, 0, 'jobs migrate');
      return { kind: name, grants: Object.fromEntries((values.grant ?? []).map(grantOf)) };
    case 'work': {
      const [module = ''] = checkOperands(operands, 1, 'jobs work MODULE');
      const { concurrency, 'direct-url': direct } = values;
      return {
        kind: name,
        module,
        ...(concurrency !== undefined && { concurrency: wholeOf('--concurrency', concurrency, 1) }),
        ...(direct !== undefined && { directUrl: urlOf('--direct-url', direct) }),
      };
    }
    default:
      throw noCommand('jobs', name, COMMANDS);
  }
}

function stateOf(text: string | undefined): Readonly<{ state?: UnfinishedState }> {
  if (text === undefined) return {};
  const state = STATES.find((one) => one === text);
  if (state !== undefined) return { state };
  throw new CommandLineError(`--state is ${JSON.stringify(text)}; accepted: ${STATES.join(', ')}`);
}

function acceptedOf(values: Values): HealthOptions {
  const { backlog, 'backlog-for': backlogFor, 'pick-up-p95': pickUp, 'snapshot-age': age } = values;
  return {
    ...(backlog !== undefined && { backlog: wholeOf('--backlog', backlog, 0) }),
    ...(backlogFor !== undefined && { backlogFor: durationOf('--backlog-for', backlogFor) }),
    ...(pickUp !== undefined && { pickUpP95: durationOf('--pick-up-p95', pickUp) }),
    ...(age !== undefined && { snapshotAge: durationOf('--snapshot-age', age) }),
  };
}

function grantOf(text: string): readonly [string, '*' | readonly string[]] {
  const [, account, roles] =
    /^([A-Za-z_][A-Za-z0-9_]*)=(\*|[A-Za-z0-9_.-]+(?:,[A-Za-z0-9_.-]+)*)$/.exec(text) ?? [];
  if (account !== undefined && roles !== undefined)
    return [account, roles === '*' ? roles : roles.split(',')];
  throw new CommandLineError(`--grant is ${JSON.stringify(text)}; accepted: ACCOUNT=ROLE,ROLE, or ACCOUNT=*`);
}

function idOf(what: string, text: string): string {
  if (/^[1-9]\d{0,18}$/.test(text)) return text;
  throw new CommandLineError(
    `${what} is ${JSON.stringify(text)}; accepted: the ID of a job, as jobs list shows it`,
  );
}

function wholeOf(option: string, text: string, least: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value >= least) return value;
  throw new CommandLineError(`${option} is ${JSON.stringify(text)}; accepted: a whole number from ${least}`);
}
