/**
 * What Google's clients load for their users, or for another transport, is loaded when code first reads it: their
 * message classes, and the part of google-gax that speaks without gRPC. The packaged processes never read it.
 *
 * It has to run before google-gax and the clients are loaded: what is loaded already stays as it is, and so does what
 * is not found.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Known, loadLazily } from './lazy-module.ts';

const require = createRequire(import.meta.url);

const folderOf = (main: string): string => dirname(dirname(main));

/** Not Firestore's: its client uses them. */
function messageClasses(): readonly string[] {
  const pubsub = require.resolve('@google-cloud/pubsub');
  const api = createRequire(pubsub).resolve('@google-cloud/pubsub-api');
  const tasks = require.resolve('@google-cloud/tasks');
  const clients = [pubsub, api, tasks].map((main) => join(folderOf(main), 'protos/protos.js'));
  const shared = ['iam_service', 'locations', 'operations'].map((name) =>
    join(folderOf(require.resolve('google-gax')), 'protos', `${name}.js`),
  );
  return [...clients, ...shared];
}

/** What Firestore's client takes from the transport without gRPC is google-gax's own as well. */
const ALSO_IN_GAX = ['constructSettings', 'createDefaultBackoffSettings', 'GoogleError', 'RetryOptions'];

/** And what google-gax itself takes from it while it is loaded. */
function known(path: string): Known {
  const gax = (): object => require('google-gax') as object;
  type Without = Readonly<{ GrpcClient: Readonly<{ protobufFromJSON(...given: unknown[]): unknown }> }>;
  const protobufFromJSON = (...given: unknown[]): unknown =>
    (require(path) as Without).GrpcClient.protobufFromJSON(...given);
  return {
    ...Object.fromEntries(ALSO_IN_GAX.map((name) => [name, () => Reflect.get(gax(), name)])),
    protobufFromJSON: () => protobufFromJSON,
  };
}

function transportWithoutGrpc(): void {
  const path = require.resolve('google-gax/fallback');
  loadLazily(require, path, known(path));
}

/** `COLD_START=plain`: Google's clients load everything as they do by themselves. */
export const isPlain = process.env['COLD_START'] === 'plain';

/** Whether it was done: a test looks, so that an upgrade that undoes it does not go unnoticed. */
export const stoodIn = {
  messageClasses: done(() => messageClasses().forEach((path) => loadLazily(require, path))),
  transportWithoutGrpc: done(transportWithoutGrpc),
};

/** What is not found is loaded at once, as everywhere else. */
function done(stand: () => void): boolean {
  if (isPlain) return false;
  try {
    stand();
    return true;
  } catch {
    return false;
  }
}
