/**
 * Names made of several values. Every part is preceded by its length in bytes, so no two lists of parts give the
 * same input: ("a:b", "c") and ("a", "b:c") differ. The digest is evenly spread, which is what Firestore document
 * IDs and Cloud Tasks names want (no hot ranges), and it is legal in both.
 */
import { createHash, hash } from 'node:crypto';
import { refused } from './errors.ts';

/** Up to here copying bytes together is cheaper than an object that takes them one by one. */
const ONE_SHOT_BYTES = 4_096;

/** 43 characters of `A-Za-z0-9_-`: SHA-256 over the parts, in URL-safe base64. */
export function hashOf(...parts: readonly (string | Uint8Array)[]): string {
  let text = '';
  for (const part of parts) {
    if (typeof part !== 'string') return hashOfBytes(parts);
    text += `${Buffer.byteLength(part, 'utf8')}:${part}`;
  }
  return hash('sha256', text, 'base64url');
}

/**
 * A publisher's identifier (`dedupId`, `scheduleKey`, `sequenceKey`, an ordering key) as texts and log lines show it:
 * `#` and the first 12 digits of the SHA-256 of its UTF-8 bytes, which `printf %s KEY | sha256sum` prints as well. Throws
 * ConfigError for what is no text.
 *
 * @example
 * identifierHash('order-17'); // '#…', as the log lines of that stream have it
 */
export function identifierHash(identifier: string): string {
  if (typeof identifier !== 'string') throw refused('identifier', identifier, 'a text');
  return `#${hash('sha256', identifier, 'hex').slice(0, 12)}`;
}

function hashOfBytes(parts: readonly (string | Uint8Array)[]): string {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
    const head = Buffer.from(`${bytes.length}:`, 'latin1');
    pieces.push(head, bytes);
    length += head.length + bytes.length;
  }
  if (length <= ONE_SHOT_BYTES) return hash('sha256', Buffer.concat(pieces, length), 'base64url');
  const whole = createHash('sha256');
  for (const piece of pieces) whole.update(piece);
  return whole.digest('base64url');
}
