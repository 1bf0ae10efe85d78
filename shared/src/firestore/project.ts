/** The project of a client of Firestore, which its types do not have. */
import type { Firestore } from '@google-cloud/firestore';

type Client = Readonly<{ projectId: string }>;

/** Known from the first request on, and so in every transaction. Throws before, where the client was not given it. */
export const projectOf = (firestore: Firestore): string => (firestore as unknown as Client).projectId;

/** Undefined where the client was not given it, and has not asked for it yet. */
export function givenProjectOf(firestore: Firestore): string | undefined {
  try {
    return projectOf(firestore);
  } catch {
    return undefined;
  }
}
