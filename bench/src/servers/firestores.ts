/**
 * The Firestore servers that a benchmark of a store runs on, one after the other: the local stack's, the same one where
 * each call takes longer, and Google's emulator where that is installed.
 */
import { startOfficialFirestore } from 'pubsub-guarantees-emulator/official';
import { type Limits, limits } from '../limits.ts';
import { officialEmulators } from './java.ts';
import { startEmbedded } from './start.ts';

type Print = (line: string) => void;

const STORE_DELAY_MS = 15;

/** What is measured on each of them; the key is the name of its figures. */
export type SizesOf<Sizes> = Readonly<Record<'embedded' | 'delayed' | 'official', Sizes>>;

/** Sets the exit code to 1 where a limit was missed. Google's emulator comes last. */
export async function onFirestores<Sizes>(
  sizes: SizesOf<Sizes>,
  measure: (title: string, port: number, sizes: Sizes, judged: Limits) => Promise<object>,
  print: Print,
): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const official = officialEmulators(print);
  const judged = limits(print);
  const found: Record<string, object> = {};
  const stacks = [
    ['embedded', 0, 'local stack'],
    ['delayed', STORE_DELAY_MS, `local stack, ${STORE_DELAY_MS} ms a call`],
  ] as const;
  for (const [name, storeDelayMs, title] of stacks) {
    const servers = await startEmbedded({ storeDelayMs });
    try {
      found[name] = await measure(title, servers.firestorePort, sizes[name], judged);
    } finally {
      await servers.close();
    }
  }
  if (official !== undefined) {
    const java = await startOfficialFirestore({ found: official });
    try {
      found['official'] = await measure('official emulator', java.port, sizes.official, judged);
    } finally {
      await java.close();
    }
  }
  if (judged.missed().length > 0) process.exitCode = 1;
  return { ...found, missed: judged.missed() };
}
