/**
 * Resource names: their form, and the errors about resources in the words of the real service.
 * Rules: https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names
 */
import { randomBytes } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { invalidArgument, notFound, StatusError } from '../grpc-server.ts';

/** What stands in a subscription's `topic` after its topic was deleted. */
export const DELETED_TOPIC = '_deleted-topic_';

/** 3 to 255 characters, a letter first. */
const ID = /^[A-Za-z][A-Za-z0-9\-_.~+%]{2,254}$/;
const PROJECT = /^projects\/([^/]+)$/;

export type Collection = 'topics' | 'subscriptions' | 'snapshots' | 'schemas';

/** Throws INVALID_ARGUMENT unless `name` is a legal name in its collection, as `projects/P/topics/T`. */
export function assertName(collection: Collection, name: string): void {
  const [projects, project, kind, id, ...rest] = name.split('/');
  const legal =
    projects === 'projects' &&
    project !== undefined &&
    project !== '' &&
    kind === collection &&
    id !== undefined &&
    ID.test(id) &&
    !id.startsWith('goog') &&
    rest.length === 0;
  if (!legal) {
    throw invalidArgument(
      `Invalid resource name given (name=${name}). Refer to https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names for more information.`,
    );
  }
}

/** Throws INVALID_ARGUMENT unless `name` is `projects/P`; returns the prefix of what the project holds. */
export function projectPrefix(name: string, collection: Collection): string {
  if (!PROJECT.test(name)) throw invalidArgument(`Invalid project name given (name=${name}).`);
  return `${name}/${collection}/`;
}

/** For a subscription or snapshot whose request names none: the service then makes one up. */
export const generatedName = (collection: Collection, project: string): string =>
  `projects/${project}/${collection}/generated-${randomBytes(8).toString('hex')}`;

/** The last part of a resource name, which is what the real service's errors show. */
export const idOf = (name: string): string => name.slice(name.lastIndexOf('/') + 1);

export const projectOf = (name: string): string => name.split('/')[1] ?? '';

export const resourceNotFound = (name: string): StatusError =>
  notFound(`Resource not found (resource=${idOf(name)}).`);

/** Always throws: INVALID_ARGUMENT for a name that no resource of this kind can have, NOT_FOUND for any other. */
export function refuseMissing(collection: Collection, name: string): never {
  assertName(collection, name);
  throw resourceNotFound(name);
}

export const alreadyExists = (name: string): StatusError =>
  new StatusError(status.ALREADY_EXISTS, `Resource already exists in the project (resource=${idOf(name)}).`);
