/**
 * Where the jars of Google's emulators lie: at the path that firebase-tools' variables name, in firebase-tools' cache,
 * or in gcloud's SDK folder, in this order. A variable that leads nowhere is an error and not passed over.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';

export type OfficialService = 'pubsub' | 'firestore';

type Jar = Readonly<{
  /** What firebase-tools reads it from: a launcher script for Pub/Sub, a jar for Firestore. */
  variable: string;
  name: RegExp;
  /** Below `platform` of the SDK. */
  sdkFolder: string;
}>;

const JARS: Readonly<Record<OfficialService, Jar>> = {
  pubsub: {
    variable: 'PUBSUB_EMULATOR_BINARY_PATH',
    name: /^cloud-pubsub-emulator-.*\.jar$/,
    sdkFolder: 'pubsub-emulator/lib',
  },
  firestore: {
    variable: 'FIRESTORE_EMULATOR_BINARY_PATH',
    name: /^cloud-firestore-emulator.*\.jar$/,
    sdkFolder: 'cloud-firestore-emulator',
  },
};

/** What `findJar` says: the jar's path, or a line about a variable that leads nowhere; neither: it is not installed. */
export type JarSearch = Readonly<{ path: string } | { wrong: string } | { path?: never }>;

/** `sdkRoot` is asked only when nothing of firebase-tools is there. */
export function findJar(
  service: OfficialService,
  env: NodeJS.ProcessEnv,
  sdkRoot: () => string | undefined,
): JarSearch {
  const { variable, name, sdkFolder } = JARS[service];
  const named = env[variable];
  if (named !== undefined && named !== '') {
    const path = jarOfNamed(named, name);
    return path === undefined ? { wrong: `${variable} leads to no jar of the emulator: ${named}` } : { path };
  }
  const cached = inFirebaseCache(env, name);
  if (cached !== undefined) return { path: cached };
  const root = sdkRoot();
  const installed = root === undefined ? undefined : newest(join(root, 'platform', sdkFolder), name);
  return installed === undefined ? {} : { path: installed };
}

/** A jar is taken as it is; the launcher scripts stand beside their jar or in `bin` beside its `lib`. */
function jarOfNamed(path: string, name: RegExp): string | undefined {
  let file: string;
  try {
    file = realpathSync(path);
  } catch {
    return undefined;
  }
  if (file.endsWith('.jar')) return statSync(file).isFile() ? file : undefined;
  return newest(dirname(file), name) ?? newest(join(dirname(file), '..', 'lib'), name);
}

/** firebase-tools keeps the Firestore jar as it is and the Pub/Sub one in a folder for each version. */
function inFirebaseCache(env: NodeJS.ProcessEnv, name: RegExp): string | undefined {
  const cache = env['FIREBASE_EMULATORS_PATH'] || join(homedir(), '.cache', 'firebase', 'emulators');
  const folders = entries(cache).filter((entry) => /^pubsub-emulator-[\d.]+$/.test(entry));
  const libraries = folders.map((folder) => join(cache, folder, 'pubsub-emulator', 'lib'));
  return latest([cache, ...libraries].flatMap((folder) => matches(folder, name)));
}

function newest(folder: string, name: RegExp): string | undefined {
  return latest(matches(folder, name));
}

function matches(folder: string, name: RegExp): readonly string[] {
  return entries(folder)
    .filter((entry) => name.test(entry))
    .map((entry) => join(folder, entry));
}

/** By the version in the name, number by number. */
function latest(paths: readonly string[]): string | undefined {
  return [...paths]
    .sort((one, other) => basename(one).localeCompare(basename(other), 'en', { numeric: true }))
    .at(-1);
}

function entries(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
