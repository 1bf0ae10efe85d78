/**
 * What the stack creates when it starts: the same names that the deployed toolkit uses, in a project of its own.
 */
import { fileURLToPath } from 'node:url';

export const PROJECT = 'demo-project';
export const LOCATION = 'us-central1';
export const QUEUE = `projects/${PROJECT}/locations/${LOCATION}/queues/delay-queue`;
export const DEAD_LETTERS = 'dead-letters';

export const FUNCTIONS = ['dedup', 'delay', 'fifo', 'pipeline'] as const;
export type FunctionName = (typeof FUNCTIONS)[number];
/** The functions that keep an order, and so have a sweep. */
export const SWEPT = ['fifo', 'pipeline'] as const satisfies readonly FunctionName[];

export const topicName = (id: string): string => `projects/${PROJECT}/topics/${id}`;
export const subscriptionName = (id: string): string => `projects/${PROJECT}/subscriptions/${id}`;

/** Where the other two packages live: the stack starts them, and knows nothing else of them. */
export const PACKAGES = {
  functions: fileURLToPath(new URL('../../../functions/', import.meta.url)),
  appengine: fileURLToPath(new URL('../../../appengine/', import.meta.url)),
} as const;

/** Everything listens on one of these, counted from the base. */
const OFFSETS = {
  pubsub: 0,
  firestore: 1,
  tasks: 2,
  control: 3,
  republisher: 4,
  dedup: 5,
  delay: 6,
  fifo: 7,
  pipeline: 8,
} as const;
export type PortName = keyof typeof OFFSETS;
export type Ports = Readonly<Record<PortName, number>>;

export const DEFAULT_PORT_BASE = 8700;
export const HIGHEST_PORT_BASE = 65_535 - Math.max(...Object.values(OFFSETS));

export function portsFrom(base: number): Ports {
  const entries = Object.entries(OFFSETS).map(([name, offset]) => [name, base + offset]);
  return Object.fromEntries(entries) as Ports;
}
