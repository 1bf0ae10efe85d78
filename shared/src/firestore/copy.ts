/**
 * A client of another copy of `@google-cloud/firestore` than the library's is refused at once: field transforms and
 * timestamps of one copy are no such things to the other, so each write would fail, as if the store were down for ever.
 */
import { Firestore } from '@google-cloud/firestore';
import { refusedAs } from '../errors.ts';
import { guardedFirestore } from '../google-client.ts';

/** The client itself, which from here on survives missing credentials. Throws ConfigError unless it is of the library's own copy. */
export function sameFirestore(client: Firestore): Firestore {
  if (client instanceof Firestore) return guardedFirestore(client);
  throw refusedAs(
    'firestore',
    "no client of the library's own copy of @google-cloud/firestore",
    'one whose package is installed once, in the version that pubsub-guarantees needs (npm ls @google-cloud/firestore)',
  );
}
