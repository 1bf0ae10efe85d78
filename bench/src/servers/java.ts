/** Google's own Pub/Sub and Firestore emulators, where they and a java are installed. */
import { type FoundOfficial, findOfficial } from 'pubsub-guarantees-emulator/official';

export type JavaEmulators = FoundOfficial;

/** Undefined, with a line that says what is missing, where they cannot be run. */
export function officialEmulators(print: (line: string) => void): JavaEmulators | undefined {
  const found = findOfficial();
  if (found.ok) return found;
  print(`skipped: ${found.missing}`);
  return undefined;
}
