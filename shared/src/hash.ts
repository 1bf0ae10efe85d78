/**
 * Names made of several values. Every part is preceded by its length in bytes, so no two lists of parts give the
 * same input: ("a:b", "c") and ("a", "b:c") differ. The digest is evenly spread, which is what Firestore document
 * IDs and Cloud Tasks names want (no hot ranges), and it is legal in both.
 */
import { createHash } from 'node:crypto';

/** 43 characters of `A-Za-z0-9_-`: SHA-256 over the parts, in URL-safe base64. */
export function hashOf(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest('base64url');
}
