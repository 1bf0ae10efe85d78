/**
 * What a stack begins with: topics, subscriptions, queues, documents, from one description. Each becomes the call that
 * a client would make, so what is legal is the server's business; what the description itself has wrong is an error of
 * one line that names the place. Options have Google's JSON names (https://cloud.google.com/pubsub/docs/reference/rest,
 * https://cloud.google.com/tasks/docs/reference/rest), and a subscription may have `expirationPeriod` instead of
 * `expirationPolicy`.
 */
import { MESSAGES } from '../cloud-tasks/rest-messages.ts';
import { parseDefinitions } from '../firestore/index-definitions.ts';
import { checkTriggers, type Trigger } from '../firestore/triggers.ts';
import type { TtlPolicy } from '../firestore/ttl.ts';
import { type Fields, fromJson } from '../proto-json.ts';
import { DEFAULT_PROJECT, projectOf, type Service } from '../stack/services.ts';
import { writeOf } from './documents.ts';
import { withExpirationPolicy } from './expiration-period.ts';
import {
  type Named,
  named,
  objectAt,
  type Options,
  optionalText,
  type Path,
  type PlaceOf,
  placeIn,
  SeedError,
} from './named.ts';
import { SUBSCRIPTION, TOPIC } from './pubsub-fields.ts';

export type SeedStep = Readonly<{
  /** Where it is described, for errors. */
  at: string;
  service: Service;
  rpc: 'CreateTopic' | 'CreateSubscription' | 'CreateQueue' | 'Commit';
  request: object;
}>;

export type Seed = Readonly<{
  project: string;
  ttl: readonly TtlPolicy[];
  triggers: readonly Trigger[];
  /** As `startFirestore` takes them; undefined: none are defined. */
  indexes: object | undefined;
  /** In an order in which each finds what it refers to; those of one `rpc` do not need each other. */
  steps: readonly SeedStep[];
  /** The same in another project, as far as its names are not complete. */
  in(project: string): Seed;
}>;

/** A list of names and of objects with a `name`, or an object by names. */
type NamedParts = readonly unknown[] | Readonly<Record<string, unknown>>;

export type SeedDescription = Readonly<{
  /** Of every name that is not complete. Default: `demo-project`. */
  project?: string;
  /** Of every queue that is not complete. Default: `us-central1`. */
  location?: string;
  /** With Google's options, and `subscriptions` of its own in each. */
  topics?: NamedParts;
  /** Each with its `topic`. */
  subscriptions?: NamedParts;
  queues?: NamedParts;
  firestore?: Readonly<{
    /** By path: plain JSON, or Google's typed form (`{ timestampValue: … }`) for what JSON has not. */
    documents?: Readonly<Record<string, object>>;
    /** The field that holds the time, by collection group. */
    ttl?: Readonly<Record<string, string>>;
    /** Where an event goes for each document that is created, by the path of its collection. */
    triggers?: Readonly<Record<string, string>>;
    /** As in a firestore.indexes.json. */
    indexes?: readonly object[];
    fieldOverrides?: readonly object[];
  }>;
}>;

const KEYS = ['project', 'location', 'topics', 'subscriptions', 'queues', 'firestore'];
const DOCUMENTS = ['firestore', 'documents'];
const FIRESTORE_KEYS = ['documents', 'ttl', 'triggers', 'indexes', 'fieldOverrides'];

/** Throws an error of one line that names the place. */
export function seedFrom(description: SeedDescription, placeOf: PlaceOf = placeIn('seed')): Seed {
  const root = objectAt(description, [], placeOf, KEYS);
  const project = projectIn(root, placeOf);
  const location = optionalText(root['location'], ['location'], placeOf) ?? 'us-central1';
  const full = (kind: string, name: string): string =>
    name.startsWith('projects/') ? name : `projects/${project}/${kind}/${name}`;
  const firestore = objectAt(root['firestore'] ?? {}, ['firestore'], placeOf, FIRESTORE_KEYS);

  const request = (fields: Fields, json: object, path: Path): object => {
    try {
      return fromJson(fields, json);
    } catch (error) {
      throw new SeedError(placeOf(path), error instanceof Error ? error.message : String(error));
    }
  };
  const subscription = ({ name, options, path }: Named, ownTopic?: string): SeedStep => {
    const { topic, deadLetterPolicy, ...rest } = withExpirationPolicy(options, path, placeOf);
    if (ownTopic !== undefined && topic !== undefined) {
      throw new SeedError(placeOf(path), 'topic is set in a subscription that is below its topic');
    }
    const of = ownTopic ?? optionalText(topic, [...path, 'topic'], placeOf);
    if (of === undefined)
      throw new SeedError(placeOf(path), 'topic is missing; accepted: the name of a topic');
    const json = {
      ...rest,
      name: full('subscriptions', name),
      topic: full('topics', of),
      ...(deadLetterPolicy !== undefined && { deadLetterPolicy: withFullTopic(deadLetterPolicy, full) }),
    };
    const made = request(SUBSCRIPTION, json, path);
    return { at: placeOf(path), service: 'pubsub', rpc: 'CreateSubscription', request: made };
  };

  const topics = named(root['topics'], ['topics'], placeOf);
  const steps: SeedStep[] = topics.map(({ name, options, path }) => {
    // The next step's, and null is an absent field.
    const topic = { ...options, subscriptions: null, name: full('topics', name) };
    const made = request({ ...TOPIC, subscriptions: 'strings' }, topic, path);
    return { at: placeOf(path), service: 'pubsub', rpc: 'CreateTopic', request: made };
  });
  for (const { name, options, path } of topics) {
    const own = named(options['subscriptions'], [...path, 'subscriptions'], placeOf);
    steps.push(...own.map((each) => subscription(each, name)));
  }
  steps.push(
    ...named(root['subscriptions'], ['subscriptions'], placeOf).map((each) => subscription(each)),
    ...named(root['queues'], ['queues'], placeOf).map(({ name, options, path }): SeedStep => {
      const queue = { ...options, name: full(`locations/${location}/queues`, name) };
      const parent = queue.name.replace(/\/queues\/[^/]*$/, '');
      const made = request(MESSAGES['CreateQueue']?.request ?? {}, { parent, queue }, path);
      return { at: placeOf(path), service: 'tasks', rpc: 'CreateQueue', request: made };
    }),
    ...named(objectAt(firestore['documents'] ?? {}, DOCUMENTS, placeOf), DOCUMENTS, placeOf).map(
      (each): SeedStep => {
        const at = placeOf(each.path);
        return { at, service: 'firestore', rpc: 'Commit', request: writeOf(each, project, at) };
      },
    ),
  );
  return {
    project,
    ttl: ttlOf(firestore['ttl'], placeOf),
    triggers: triggersOf(firestore['triggers'], placeOf),
    indexes: indexesOf(firestore, placeOf),
    steps,
    in: (other) => seedFrom({ ...description, project: other }, placeOf),
  };
}

function projectIn({ project }: Options, placeOf: PlaceOf): string {
  const given = optionalText(project, ['project'], placeOf) ?? DEFAULT_PROJECT;
  try {
    return projectOf(given, 'it');
  } catch (error) {
    throw new SeedError(placeOf(['project']), error instanceof Error ? error.message : String(error));
  }
}

function withFullTopic(policy: unknown, full: (kind: string, name: string) => string): unknown {
  if (typeof policy !== 'object' || policy === null || !('deadLetterTopic' in policy)) return policy;
  const { deadLetterTopic: topic } = policy;
  return typeof topic === 'string' ? { ...policy, deadLetterTopic: full('topics', topic) } : policy;
}

function indexesOf({ indexes, fieldOverrides }: Options, placeOf: PlaceOf): object | undefined {
  if (indexes === undefined && fieldOverrides === undefined) return undefined;
  const definitions = { indexes: indexes ?? [], fieldOverrides: fieldOverrides ?? [] };
  try {
    parseDefinitions(definitions, 'firestore');
  } catch (error) {
    const path = ['firestore', indexes === undefined ? 'fieldOverrides' : 'indexes'];
    throw new SeedError(placeOf(path), error instanceof Error ? error.message : String(error));
  }
  return definitions;
}

function triggersOf(value: unknown, placeOf: PlaceOf): readonly Trigger[] {
  return Object.entries(objectAt(value ?? {}, ['firestore', 'triggers'], placeOf)).map(
    ([collection, url]) => {
      const path = ['firestore', 'triggers', collection];
      const trigger = { collection, url: optionalText(url, path, placeOf) ?? '' };
      try {
        checkTriggers([trigger]);
      } catch (error) {
        throw new SeedError(placeOf(path), error instanceof Error ? error.message : String(error));
      }
      return trigger;
    },
  );
}

function ttlOf(value: unknown, placeOf: PlaceOf): readonly TtlPolicy[] {
  return Object.entries(objectAt(value ?? {}, ['firestore', 'ttl'], placeOf)).map(
    ([collectionGroup, field]) => {
      const path = ['firestore', 'ttl', collectionGroup];
      const text = optionalText(field, path, placeOf);
      if (text === undefined)
        throw new SeedError(placeOf(path), 'there is no field; accepted: the name of a field');
      return { collectionGroup, field: text };
    },
  );
}
