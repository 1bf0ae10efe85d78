/** The variables that lead programs to a running stack, and the shell lines that set them. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';

export type EnvironmentSource = Readonly<{
  pubsub?: string | undefined;
  firestore?: string | undefined;
  tasks?: string | undefined;
  /** A URL. */
  postgres?: string | undefined;
  control: string;
  project: string;
}>;

/** Of the services that run, and no others. */
export function environmentOf(addresses: EnvironmentSource): Readonly<Record<string, string>> {
  const { pubsub, firestore, tasks, postgres, control, project } = addresses;
  return {
    ...(pubsub !== undefined && { PUBSUB_EMULATOR_HOST: pubsub }),
    ...(firestore !== undefined && { FIRESTORE_EMULATOR_HOST: firestore }),
    ...(tasks !== undefined && { CLOUD_TASKS_EMULATOR_HOST: tasks }),
    ...(postgres !== undefined && { DATABASE_URL: postgres }),
    LOCAL_STACK_CONTROL: control,
    GOOGLE_CLOUD_PROJECT: project,
    // Otherwise Google's Node clients first look for a metadata server that a laptop does not have.
    METADATA_SERVER_DETECTION: 'none',
    // gcloud speaks REST, which the control address does.
    ...(pubsub !== undefined && { CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB: `${control}/` }),
    ...(tasks !== undefined && { CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDTASKS: `${control}/` }),
    CLOUDSDK_AUTH_DISABLE_CREDENTIALS: 'true',
    CLOUDSDK_CORE_PROJECT: project,
  };
}

export const exportLines = (environment: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(environment).map(([name, value]) => `export ${name}=${quoted(value)}`);

/** As a POSIX shell takes it for one word, whatever it holds. */
const quoted = (value: string): string =>
  /^[\w./:@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;

const temporaryOf = (file: string): string => `${file}.${process.pid}.tmp`;

/** Throws an error that names the file if `writeWhole` could not write it as things are; leaves everything as it is. */
export function assertWritable(file: string): void {
  const temporary = temporaryOf(file);
  try {
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('it is a folder');
    closeSync(openSync(temporary, 'w'));
    rmSync(temporary);
  } catch (error) {
    throw new Error(`${file} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}

/** The file is there as a whole or as it was before, whatever happens. Throws an error that names it. */
export function writeWhole(file: string, text: string): void {
  const temporary = temporaryOf(file);
  try {
    const open = openSync(temporary, 'w');
    try {
      writeFileSync(open, text);
      fsyncSync(open);
    } finally {
      closeSync(open);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new Error(`${file} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
