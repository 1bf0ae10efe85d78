/** What a stack can be started with. */
import type { FirestoreOptions, Trigger } from '../firestore/index.ts';
import type { Seed } from '../seed/seed.ts';
import type { Replaceable } from './servers.ts';
import { type PortOptions, projectOf, type Service, SERVICES } from './services.ts';

export type StackOptions<S extends Service = Service> = Readonly<{
  /** Default: all three. */
  services?: readonly S[];
  /** The first of four ports in a row: Pub/Sub, Firestore, Cloud Tasks, control. Default: any that are free. */
  portBase?: number;
  /** Single ports, which win over `portBase`; 0 is any that is free. */
  ports?: PortOptions;
  /** Of what a seed names without a project, and of the addresses. Default: that of the seed, or `demo-project`. */
  project?: string;
  /** What the servers say, a line at a time. Default: nothing. */
  log?: (line: string) => void;
  /** Time-to-live policies of Firestore, beside those of the seed. */
  ttl?: NonNullable<FirestoreOptions['ttl']>;
  /** The indexes that queries would need in the service, and what becomes of a query that has none. */
  indexes?: NonNullable<FirestoreOptions['indexes']>;
  /**
   * Triggers of Firestore, beside those of the seed. They fire from when the stack is ready: not for what is seeded or
   * loaded.
   */
  triggers?: readonly Trigger[];
  /** Topics, subscriptions, queues and documents to begin with: see `parseSeed` and `seedFrom`. */
  seed?: Seed;
  /** A state to begin with, as `save()` gave it; not together with `seed`. */
  state?: unknown;
  /** A plan of faults, set when everything else is ready. */
  faults?: unknown;
  /** Largest task in bytes. Default: that of `startCloudTasks`. */
  maxTaskBytes?: number;
  /** Base URL that tasks with an App Engine target go to. Without it they are refused. */
  appEngine?: string;
  /**
   * By whose rights Pub/Sub and Cloud Tasks judge all calls once the stack is ready, as a member of a policy:
   * `serviceAccount:a@p.iam.gserviceaccount.com`. Without it policies are kept and not enforced.
   */
  caller?: string;
  /**
   * Pushes, tasks and triggers also go to addresses that are not this machine's own, such as a container's. Default: false, so
   * that nothing that reaches the stack can make it send requests elsewhere.
   */
  remoteTargets?: boolean;
  /**
   * Google's own Pub/Sub and Firestore emulators in place of this package's. Then the clock cannot be moved, faults are
   * for Cloud Tasks alone, and nothing can be saved, loaded or reset. Default: false.
   */
  official?: boolean;
  /** `host:port` of emulators that run already, used in place of this package's. The same holds as for `official`. */
  external?: Readonly<Partial<Record<Replaceable, string>>>;
}>;

/** Throws an error that names the option. */
export function assertCaller(caller: string): void {
  if (/^(?:user|serviceAccount):[^@\s]+@[^@\s]+$/.test(caller)) return;
  throw new Error(`caller is ${JSON.stringify(caller)}; accepted: user:EMAIL or serviceAccount:EMAIL`);
}

/** Throws an error that names the option. */
export function chosenServices({
  services = SERVICES,
  project,
  seed,
  state,
  indexes,
  caller,
  triggers = [],
  official,
  external,
}: StackOptions): ReadonlySet<Service> {
  const known: readonly string[] = SERVICES;
  const unknown = services.find((name) => !known.includes(name));
  if (unknown !== undefined || services.length === 0) {
    throw new Error(
      `services is ${JSON.stringify(services)}; accepted: one or more of ${SERVICES.join(', ')}`,
    );
  }
  if (project !== undefined) projectOf(project, 'project');
  if (seed !== undefined && state !== undefined) {
    throw new Error('seed and state cannot both be given: a saved state has its own topics and queues');
  }
  if (caller !== undefined) assertCaller(caller);
  if (seed?.indexes !== undefined && indexes?.definitions !== undefined) {
    throw new Error('indexes are defined twice: in the seed and beside it');
  }
  const hasTriggers = triggers.length > 0 || (seed !== undefined && seed.triggers.length > 0);
  if (hasTriggers && (official === true || external?.firestore !== undefined)) {
    throw new Error('triggers are fired by this package’s own Firestore alone');
  }
  return new Set(services);
}
