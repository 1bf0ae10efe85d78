/**
 * Runs before everything else in a packaged process, for the sake of cold starts (docs/decisions/0017-packaging.md):
 * Google's clients build the messages of a method when it is first called, and load their second copy of all messages,
 * the classes that they export for their users, when somebody asks for one. By themselves they do both for whole APIs
 * when they are loaded and made, also for administration and for versions that nobody calls.
 *
 * It replaces one public method of google-gax, which is pinned. What it cannot read or find is left as it was.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { grpc, GrpcClient, protobuf } from 'google-gax';
import type { Described } from './described.ts';
import { loadLazily } from './lazy-module.ts';
import { type Build, lazyServices } from './lazy-services.ts';

/** What a function or the republisher calls in its first minutes. Any other method works as well, and begins slower. */
const EXPECTED: ReadonlySet<string> = new Set([
  'google.pubsub.v1.Publisher.Publish',
  'google.pubsub.v1.Subscriber.GetSubscription',
  'google.cloud.tasks.v2.CloudTasks.CreateTask',
  ...['BatchGetDocuments', 'BeginTransaction', 'Commit', 'Rollback', 'RunQuery'].map(
    (method) => `google.firestore.v1.Firestore.${method}`,
  ),
]);

/** Those that google-gax gives to @grpc/proto-loader, as far as they are protobufjs's: a test compares them. */
export const AS_GAX_READS = { longs: String, enums: String, defaults: true, oneofs: true };

type Load = (typeof GrpcClient)['prototype']['loadProtoJSON'];
type Json = Parameters<Load>[0];
type Loaded = ReturnType<Load>;

const whole = Reflect.get(GrpcClient.prototype, 'loadProtoJSON') as Load;
const known = new WeakMap<Json, Loaded>();

const build: Build = (description) =>
  protobuf.Root.fromJSON(description as protobuf.INamespace) as unknown as ReturnType<Build>;

function lazily(json: Json): Loaded | undefined {
  try {
    const services = lazyServices(json as Described, EXPECTED, build, AS_GAX_READS);
    return grpc.loadPackageDefinition(services);
  } catch {
    return undefined;
  }
}

GrpcClient.prototype.loadProtoJSON = function (this: GrpcClient, json: Json, ignoreCache?: boolean): Loaded {
  const loaded = known.get(json) ?? lazily(json) ?? whole.call(this, json, ignoreCache);
  known.set(json, loaded);
  return loaded;
};

const require = createRequire(import.meta.url);

/** Not Firestore's: its client uses them. */
function messageClasses(): readonly string[] {
  const folderOf = (main: string): string => dirname(dirname(main));
  const pubsub = require.resolve('@google-cloud/pubsub');
  const api = createRequire(pubsub).resolve('@google-cloud/pubsub-api');
  const tasks = require.resolve('@google-cloud/tasks');
  return [pubsub, api, tasks].map((main) => join(folderOf(main), 'protos/protos.js'));
}

try {
  for (const path of messageClasses()) loadLazily(require, path);
} catch {
  // Loaded at once, as everywhere else.
}
