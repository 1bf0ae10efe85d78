/**
 * Runs before everything else in a packaged process, for the sake of cold starts (docs/decisions/0017-packaging.md):
 * Google's clients build the messages of a method when it is first called, those of Firestore not at all, and load what
 * they have for their users when code first reads it (stand-ins.ts). By themselves they do both for whole APIs when they
 * are loaded and made, also for administration and for versions that are never called.
 *
 * What it gains: 0.17 s of CPU time until the first message is answered (medians of nine starts on two shared cores:
 * dedup 0.37 s with it and 0.54 s without, fifo 0.41 s and 0.58 s). `COLD_START=plain` turns it off.
 *
 * It replaces one public method of google-gax, which is pinned. What it cannot read or find is left as it was: a process
 * then starts more slowly, and works as well.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { GrpcClient as GaxGrpcClient, protobuf as Protobuf } from 'google-gax';
import type { Described } from './described.ts';
import { type Build, type LazyServices, lazyServices, once } from './lazy-services.ts';
import { loadedClasses } from './loaded-classes.ts';
import { isPlain, stoodIn } from './stand-ins.ts';

// Not a static import: in a bundle those come first, and the stand-ins must.
const { grpc, GrpcClient, protobuf } = await import('google-gax');

const FIRESTORE = 'google.firestore.v1.Firestore';
/**
 * What a function or the republisher calls in its first minutes: in one group what one message calls together. Any
 * other method works as well, and begins slower.
 */
export const EXPECTED: readonly (readonly string[])[] = [
  ['google.pubsub.v1.Publisher.Publish'],
  ['google.pubsub.v1.Subscriber.GetSubscription'],
  ['google.cloud.tasks.v2.CloudTasks.CreateTask'],
  [`${FIRESTORE}.BatchGetDocuments`, `${FIRESTORE}.Commit`],
  [`${FIRESTORE}.BeginTransaction`, `${FIRESTORE}.Rollback`],
  [`${FIRESTORE}.RunQuery`],
];

/** Those that google-gax gives to @grpc/proto-loader, as far as they are protobufjs's: a test compares them. */
export const AS_GAX_READS = { longs: String, enums: String, defaults: true, oneofs: true };

type Load = GaxGrpcClient['loadProtoJSON'];
type Json = Parameters<Load>[0];
type Loaded = ReturnType<Load>;

const whole = Reflect.get(GrpcClient.prototype, 'loadProtoJSON') as Load | undefined;
const known = new WeakMap<Json, Loaded>();

const build: Build = (description) =>
  protobuf.Root.fromJSON(description as Protobuf.INamespace) as unknown as ReturnType<Build>;

const require = createRequire(import.meta.url);

/** Firestore's client loads them with itself, for a single conversion of its own. */
const firestoreClasses = loadedClasses(
  require,
  once(() => {
    const client = createRequire(require.resolve('@google-cloud/firestore'));
    return join(dirname(dirname(client.resolve('@google-cloud/firestore-api'))), 'protos/protos.js');
  }),
);

function lazily(json: Json): Loaded | undefined {
  try {
    const services = lazyServices(json as Described, EXPECTED, build, AS_GAX_READS, firestoreClasses);
    return clientsOf(services);
  } catch {
    return undefined;
  }
}

/** As grpc.loadPackageDefinition has them, in scopes; each is made when its property is first read. */
function clientsOf(services: LazyServices): Loaded {
  const all: Loaded = {};
  for (const name of Object.keys(services)) {
    const scopes = name.split('.');
    const last = scopes.pop() ?? name;
    const scope = scopes.reduce<Loaded>((at, key) => (at[key] ??= {}) as Loaded, all);
    const made = once(() => grpc.loadPackageDefinition({ [last]: services[name] ?? {} })[last]);
    Object.defineProperty(scope, last, { get: made, enumerable: true });
  }
  return all;
}

// A google-gax that has no such method loads in its own way.
if (typeof whole === 'function' && !isPlain) {
  GrpcClient.prototype.loadProtoJSON = function (
    this: GaxGrpcClient,
    json: Json,
    ignoreCache?: boolean,
  ): Loaded {
    const loaded = known.get(json) ?? lazily(json) ?? whole.call(this, json, ignoreCache);
    known.set(json, loaded);
    return loaded;
  };
}

/** A test looks, so that an upgrade that undoes it does not go unnoticed. */
export const isAsExpected = { ...stoodIn, loadProtoJSON: typeof whole === 'function' };
