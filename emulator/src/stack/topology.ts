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

/** Everything listens on one of these ports, in this order from the base. */
const LISTENERS = ['pubsub', 'firestore', 'tasks', 'control', 'republisher', ...FUNCTIONS] as const;
type PortName = (typeof LISTENERS)[number];
export const PORT_COUNT = LISTENERS.length;
export type Ports = Readonly<Record<PortName, number>>;

export const DEFAULT_PORT_BASE = 8700;
export const HIGHEST_PORT_BASE = 65_536 - PORT_COUNT;

export const portsFrom = (base: number): Ports => portsOf(LISTENERS.map((_, index) => base + index));

export function portsOf(ports: readonly number[]): Ports {
  return Object.fromEntries(LISTENERS.map((name, index) => [name, ports[index]])) as Ports;
}
