/**
 * The service definition of google.cloud.tasks.v2.CloudTasks, from the protos that Google's client packages ship.
 * Their `exports` hide those files, so each package's main entry is resolved and its folders walked upwards.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadServices } from '../grpc-server.ts';

const SERVICE = 'google.cloud.tasks.v2.CloudTasks';
const PROTO = 'google/cloud/tasks/v2/cloudtasks.proto';

let read: ServiceDefinition | undefined;

/** Read once for all servers of a process: they change nothing in it. */
export function cloudTasksDefinition(): ServiceDefinition {
  if (read === undefined) {
    const { file, includeDirs } = protoFiles();
    read = loadServices(file, includeDirs, [SERVICE])[SERVICE];
  }
  return read;
}

export function protoFiles(): Readonly<{ file: string; includeDirs: readonly string[] }> {
  const tasks = protoFolder('@google-cloud/tasks', PROTO);
  const common = protoFolder('google-gax', 'google/api/annotations.proto');
  return { file: join(tasks, PROTO), includeDirs: [tasks, common] };
}

function protoFolder(packageName: string, file: string): string {
  const entry = createRequire(import.meta.url).resolve(packageName);
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
    const protos = join(folder, 'protos');
    if (existsSync(join(protos, file))) return protos;
  }
  throw new Error(`the package ${packageName} (found at ${entry}) does not ship ${file}`);
}
