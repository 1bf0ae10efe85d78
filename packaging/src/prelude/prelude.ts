/**
 * Runs before everything else in a packaged process, for the sake of cold starts (docs/decisions/0017-packaging.md):
 * Google's clients build the messages of a method when it is first called, and load their second copy of all messages,
 * the classes that they export for their users, when somebody asks for one. By themselves they do both for whole APIs
 * when they are loaded and made, also for administration and for versions that nobody calls.
 *
 * It replaces one public method of google-gax, which is pinned. What it cannot read or find is left as it was: a process
 * then starts more slowly, and works as well.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  constructSettings,
  createDefaultBackoffSettings,
  GoogleError,
  grpc,
  GrpcClient,
  protobuf,
  RetryOptions,
} from 'google-gax';
import type { Described } from './described.ts';
import { loadLazily } from './lazy-module.ts';
import { type Build, lazyServices } from './lazy-services.ts';

const FIRESTORE = 'google.firestore.v1.Firestore';
/**
 * What a function or the republisher calls in its first minutes: in one group what one message calls together. Any
 * other method works as well, and begins slower.
 */
const EXPECTED: readonly (readonly string[])[] = [
  ['google.pubsub.v1.Publisher.Publish'],
  ['google.pubsub.v1.Subscriber.GetSubscription'],
  ['google.cloud.tasks.v2.CloudTasks.CreateTask'],
  [`${FIRESTORE}.BatchGetDocuments`, `${FIRESTORE}.Commit`],
  [`${FIRESTORE}.BeginTransaction`, `${FIRESTORE}.Rollback`],
  [`${FIRESTORE}.RunQuery`],
];

/** Those that google-gax gives to @grpc/proto-loader, as far as they are protobufjs's: a test compares them. */
export const AS_GAX_READS = { longs: String, enums: String, defaults: true, oneofs: true };

type Load = (typeof GrpcClient)['prototype']['loadProtoJSON'];
type Json = Parameters<Load>[0];
type Loaded = ReturnType<Load>;

const whole = Reflect.get(GrpcClient.prototype, 'loadProtoJSON') as Load | undefined;
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

// A google-gax that has no such method loads in its own way.
if (typeof whole === 'function') {
  GrpcClient.prototype.loadProtoJSON = function (
    this: GrpcClient,
    json: Json,
    ignoreCache?: boolean,
  ): Loaded {
    const loaded = known.get(json) ?? lazily(json) ?? whole.call(this, json, ignoreCache);
    known.set(json, loaded);
    return loaded;
  };
}

const require = createRequire(import.meta.url);

/** Not Firestore's: its client uses them. */
function messageClasses(): readonly string[] {
  const folderOf = (main: string): string => dirname(dirname(main));
  const pubsub = require.resolve('@google-cloud/pubsub');
  const api = createRequire(pubsub).resolve('@google-cloud/pubsub-api');
  const tasks = require.resolve('@google-cloud/tasks');
  return [pubsub, api, tasks].map((main) => join(folderOf(main), 'protos/protos.js'));
}

/** What Firestore's client takes from the transport without gRPC, which nobody here uses: google-gax's own as well. */
export const FROM_GAX = { constructSettings, createDefaultBackoffSettings, GoogleError, RetryOptions };

function transportWithoutGrpc(): string {
  return createRequire(require.resolve('@google-cloud/firestore')).resolve('google-gax/fallback');
}

/** Whether it was done: a test looks, so that an upgrade that undoes it does not go unnoticed. */
export const isAsExpected = {
  messageClasses: stoodIn(() => messageClasses().forEach((path) => loadLazily(require, path))),
  transportWithoutGrpc: stoodIn(() => loadLazily(require, transportWithoutGrpc(), FROM_GAX)),
  loadProtoJSON: typeof whole === 'function',
};

/** What is not found is loaded at once, as everywhere else. */
function stoodIn(stand: () => void): boolean {
  try {
    stand();
    return true;
  } catch {
    return false;
  }
}
