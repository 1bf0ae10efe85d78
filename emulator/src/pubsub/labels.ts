/** Labels of topics, subscriptions and snapshots: https://cloud.google.com/pubsub/docs/labels */
import { invalidArgument } from '../grpc-server.ts';

const MAX_LABELS = 64;
/** Characters, of a key as of a value. */
const MAX_LENGTH = 63;
/** Lowercase letters, letters of scripts that have no case, digits, underscores and dashes; a key begins with a letter. */
const KEY = /^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]*$/u;
const VALUE = /^[\p{Ll}\p{Lo}\p{N}_-]*$/u;

/** Throws INVALID_ARGUMENT that names the first label that cannot be. */
export function assertLabels(labels: Readonly<Record<string, string>>): void {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS) {
    throw invalidArgument(`A resource can have ${MAX_LABELS} labels, not ${entries.length}.`);
  }
  for (const [key, value] of entries) {
    if (!KEY.test(key) || tooLong(key)) {
      throw invalidArgument(
        `Invalid label key "${key}": 1 to ${MAX_LENGTH} lowercase letters, digits, _ and -, a letter first.`,
      );
    }
    if (!VALUE.test(value) || tooLong(value)) {
      throw invalidArgument(
        `Invalid value "${value}" of the label ${key}: up to ${MAX_LENGTH} lowercase letters, digits, _ and -.`,
      );
    }
  }
}

const tooLong = (text: string): boolean => Array.from(text).length > MAX_LENGTH;
