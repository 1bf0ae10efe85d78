/**
 * The three services, what they are called, and where they and the control API listen.
 */
export const SERVICES = ['pubsub', 'firestore', 'tasks'] as const;
export type Service = (typeof SERVICES)[number];

export const TITLE = { pubsub: 'Pub/Sub', firestore: 'Firestore', tasks: 'Cloud Tasks' } as const;

export const DEFAULT_PROJECT = 'demo-project';

/**
 * The name if it can be a project in the name of a resource: of Google's own, letters, digits, hyphens, and dots and
 * colons in old ones. Throws an error that names the `place`.
 */
export function projectOf(name: string, place: string): string {
  if (/^[a-z0-9][a-z0-9.:-]*$/i.test(name)) return name;
  throw new Error(`${place} is ${JSON.stringify(name)}; accepted: letters, digits, hyphens, dots and colons`);
}

/** In this order from the base, whether all are started or not, so that each has a port of its own for good. */
export const LISTENERS = [...SERVICES, 'control'] as const;
type Listener = (typeof LISTENERS)[number];

export type PortOptions = Readonly<Partial<Record<Listener, number>>>;
/** 0: any that is free. */
export type Ports = Readonly<Record<Listener, number>>;

export const DEFAULT_PORT_BASE = 8700;

/** `given` wins over `base`; neither: any that is free. Throws an error that names a port which is none, or given twice. */
export function portsOf(given: PortOptions = {}, base?: number): Ports {
  const used = new Map<number, string>();
  const entries = LISTENERS.map((name, index) => {
    const port = given[name] ?? (base === undefined ? 0 : base + index);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new Error(`the port of ${name} is ${port}; accepted: a whole number from 0 (any) to 65535`);
    }
    const other = used.get(port);
    if (port !== 0 && other !== undefined)
      throw new Error(`port ${port} is given to ${other} and to ${name}`);
    used.set(port, name);
    return [name, port];
  });
  return Object.fromEntries(entries) as Ports;
}

/** A request that the stack as it was started cannot carry out: with Google's own emulators, say. */
export class UnsupportedError extends Error {
  readonly code = 'UNSUPPORTED';
  constructor(message: string) {
    super(message);
    this.name = 'UnsupportedError';
  }
}
