/**
 * Google's own Pub/Sub and Firestore emulators, where gcloud has installed them. They are started with `java`
 * directly: `gcloud … start` leaves its Java child running when it is ended.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The arguments of `java` for each. */
export type JavaEmulators = Readonly<{
  pubsub: (port: number) => readonly string[];
  firestore: (port: number) => readonly string[];
}>;

/** Undefined, with a line that says what is missing, where they cannot be run. */
export function officialEmulators(print: (line: string) => void): JavaEmulators | undefined {
  const sdk = run('gcloud', ['info', '--format=value(installation.sdk_root)']);
  if (sdk === undefined || run('java', ['-version']) === undefined) {
    print('skipped: the official emulators need gcloud and java, and not both are on the PATH');
    return undefined;
  }
  const pubsubFolder = join(sdk, 'platform/pubsub-emulator/lib');
  const pubsubJar = existsSync(pubsubFolder)
    ? readdirSync(pubsubFolder).find((file) => /^cloud-pubsub-emulator-.*-all\.jar$/.test(file))
    : undefined;
  const firestoreJar = join(sdk, 'platform/cloud-firestore-emulator/cloud-firestore-emulator.jar');
  if (pubsubJar === undefined || !existsSync(firestoreJar)) {
    print(
      `skipped: the emulators are not installed in ${sdk} (gcloud components pubsub-emulator, cloud-firestore-emulator)`,
    );
    return undefined;
  }
  return {
    pubsub: (port) => ['-jar', join(pubsubFolder, pubsubJar), '--host=127.0.0.1', `--port=${port}`],
    // The jar names no main class of its own.
    firestore: (port) => [
      '-Duser.language=en',
      '-cp',
      firestoreJar,
      MAIN,
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
    ],
  };
}

const MAIN = 'com.google.cloud.datastore.emulator.firestore.CloudFirestore';

function run(command: string, args: readonly string[]): string | undefined {
  try {
    return execFileSync(command, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 30_000,
    }).trim();
  } catch {
    return undefined;
  }
}
