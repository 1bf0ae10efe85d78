/**
 * The `java` that runs Google's emulators: the one of JAVA_HOME, otherwise the one on the PATH. It is asked for its
 * version before anything is started with it, because an older one ends with a page of class file numbers.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export type Java = Readonly<{ command: string; version: number }>;

/** What both jars were compiled for at most (Firestore 1.19.9: class files of version 55, which is Java 11). */
const LEAST_VERSION = 11;

/** The one-line reason, where there is no java that would do. */
export function findJava(env: NodeJS.ProcessEnv): Java | string {
  const home = env['JAVA_HOME'];
  const own = home === undefined || home === '' ? undefined : join(home, 'bin', executable('java'));
  if (own !== undefined && !existsSync(own)) return `JAVA_HOME has no bin/java: ${home}`;
  const command = own ?? 'java';
  const { error, stderr } = spawnSync(command, ['-version'], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 30_000,
  });
  if (error !== undefined) {
    return own === undefined
      ? `no java on the PATH: install Java ${LEAST_VERSION} or newer`
      : `${command} cannot be run: ${error.message}`;
  }
  // "17.0.15", and "1.8.0_402" up to Java 8.
  const version = Number(/ version "(?:1\.)?(\d+)/.exec(stderr)?.[1]);
  if (Number.isNaN(version)) return `${command} -version does not say its version: ${firstLine(stderr)}`;
  if (version < LEAST_VERSION) {
    return `${command} is Java ${version}, and the emulators need Java ${LEAST_VERSION} or newer`;
  }
  return { command, version };
}

/** A command's file name: Windows wants the ending. */
function executable(name: string): string {
  return process.platform === 'win32' ? `${name}.exe` : name;
}

const firstLine = (text: string): string => text.trim().split('\n')[0] || 'it wrote nothing';
