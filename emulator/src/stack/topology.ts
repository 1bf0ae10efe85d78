/**
 * What the toolkit creates when it starts: the same names that the deployed one uses, in a project of its own.
 */
import { fileURLToPath } from 'node:url';
import { DEFAULT_PROJECT, LISTENERS } from './services.ts';

export const PROJECT = DEFAULT_PROJECT;
export const LOCATION = 'us-central1';
export const QUEUE = `projects/${PROJECT}/locations/${LOCATION}/queues/delay-queue`;
/** Wake-ups of ordered streams: a queue of their own, because these may be lost, and delayed messages may not. */
export const WAKE_QUEUE = `projects/${PROJECT}/locations/${LOCATION}/queues/wake-queue`;
export const DEAD_LETTERS = 'dead-letters';
/** The default collection of the outbox's rows. */
export const OUTBOX_ROWS = 'pubsub-guarantees-outbox-rows';

/** What has come in goes out again at another topic. */
export const FORWARDING = ['dedup', 'delay', 'fifo', 'pipeline'] as const;
export const FUNCTIONS = [...FORWARDING, 'saga'] as const;
export type FunctionName = (typeof FUNCTIONS)[number];
/** The functions that keep something for later, be it a stream, a schedule or a saga, and so have a sweep. */
export const SWEPT = ['delay', 'fifo', 'pipeline', 'saga'] as const satisfies readonly FunctionName[];

export const topicName = (id: string): string => `projects/${PROJECT}/topics/${id}`;
export const subscriptionName = (id: string): string => `projects/${PROJECT}/subscriptions/${id}`;

/** The topic that a function listens to. An orchestrator's is also the one that it is answered at. */
export const inputOf = (name: FunctionName): string => (name === 'saga' ? 'saga' : `${name}-in`);

/** Of all topics. */
export const TOPICS: readonly string[] = [
  ...FUNCTIONS.map(inputOf),
  ...FORWARDING.map((name) => `${name}-out`),
  DEAD_LETTERS,
];

/** Of all subscriptions. */
export const SUBSCRIPTIONS: ReadonlySet<string> = new Set(TOPICS.map((id) => subscriptionName(`${id}-sub`)));

/** Where the other two packages live: the toolkit starts them, and knows nothing else of them. */
export const PACKAGES = {
  functions: fileURLToPath(new URL('../../../functions/', import.meta.url)),
  appengine: fileURLToPath(new URL('../../../appengine/', import.meta.url)),
} as const;

/** The sagas that the toolkit runs unless it is told others: those of the example. */
export const EXAMPLE_SAGAS = fileURLToPath(
  new URL('../../../examples/src/sagas/definitions.ts', import.meta.url),
);

/** The processes of the toolkit, in the order of their ports, which follow those of the stack. */
export const PROGRAMS = ['republisher', ...FUNCTIONS] as const;
type Program = (typeof PROGRAMS)[number];
export type ProgramPorts = Readonly<Record<Program, number>>;

/** Ports from the toolkit's first to its last. */
export const PORT_COUNT = LISTENERS.length + PROGRAMS.length;

export const programPorts = (ports: readonly number[]): ProgramPorts =>
  Object.fromEntries(PROGRAMS.map((name, index) => [name, ports[index]])) as ProgramPorts;

export const urlOf = (port: number): string => `http://127.0.0.1:${port}`;
