/**
 * Looks for what Google's own emulators need: their jars and a java that can run them. Nothing is started but
 * `java -version`, and nothing is downloaded; what is missing is said in one line, with what to install.
 */
import { sdkRoot } from './gcloud.ts';
import { jarVersion } from './jar-version.ts';
import { findJar, type OfficialService } from './jars.ts';
import { findJava } from './java.ts';

export type FoundOfficial<S extends OfficialService = OfficialService> = Readonly<{
  ok: true;
  /** The command. */
  java: string;
  /** Its feature version: 11, 17, 21 … */
  javaVersion: number;
  jars: Readonly<Record<S, string>>;
  /** For people: `Pub/Sub 0.8.20 and Firestore 1.19.9 on Java 17`. */
  versions: string;
}>;

/** `missing` is one line: what is not there, and how to get it. */
export type MissingOfficial = Readonly<{ ok: false; missing: string }>;

export type FindOptions<S extends OfficialService> = Readonly<{
  /** Default: both. */
  services?: readonly S[];
  env?: NodeJS.ProcessEnv;
}>;

const TITLES: Readonly<Record<OfficialService, string>> = { pubsub: 'Pub/Sub', firestore: 'Firestore' };
/** Their names for `gcloud components install`. */
const COMPONENTS: Readonly<Record<OfficialService, string>> = {
  pubsub: 'pubsub-emulator',
  firestore: 'cloud-firestore-emulator',
};

export function findOfficial<S extends OfficialService = OfficialService>({
  services = ['pubsub', 'firestore'] as unknown as readonly S[],
  env = process.env,
}: FindOptions<S> = {}): FoundOfficial<S> | MissingOfficial {
  let root: { path: string | undefined } | undefined;
  const onceRoot = (): string | undefined => (root ??= { path: sdkRoot(env) }).path;
  const searched = services.map((service) => ({ service, jar: findJar(service, env, onceRoot) }));

  const problems = searched.flatMap(({ jar }) => ('wrong' in jar ? [jar.wrong] : []));
  const absent = searched.filter(({ jar }) => !('wrong' in jar) && jar.path === undefined);
  if (absent.length > 0) {
    const titles = absent.map(({ service }) => TITLES[service]).join(' and ');
    const components = absent.map(({ service }) => COMPONENTS[service]).join(' ');
    problems.push(
      `Google's ${titles} emulator${absent.length > 1 ? 's are' : ' is'} not installed: ` +
        `${onceRoot() === undefined ? 'install the Google Cloud CLI, then ' : ''}gcloud components install ${components}`,
    );
  }
  const java = findJava(env);
  if (typeof java === 'string') problems.push(java);
  if (problems.length > 0 || typeof java === 'string') return { ok: false, missing: problems.join('; ') };
  const jars = searched.map(({ service, jar }) => [service, 'path' in jar ? (jar.path ?? '') : ''] as const);
  const versions = jars.map(
    ([service, path]) =>
      `${TITLES[service]} ${jarVersion(path, COMPONENTS[service]) ?? '(of an unknown version)'}`,
  );
  return {
    ok: true,
    java: java.command,
    javaVersion: java.version,
    jars: Object.fromEntries(jars) as Record<S, string>,
    versions: `${versions.join(' and ')} on Java ${java.version}`,
  };
}
