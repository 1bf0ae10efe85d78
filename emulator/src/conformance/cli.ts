/**
 * `npm run conformance`: every case against the embedded servers and, where they are installed, Google's emulators.
 * With both it writes emulator/conformance.md; without, it says what is missing and leaves that file as it is. Ends with 1
 * when the embedded servers differ from the documentation.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findOfficial, startOfficialFirestore, startOfficialPubsub } from '../official/index.ts';
import type { Suite, World } from './case.ts';
import { cloudTasksSuite } from './cloud-tasks/suite.ts';
import { firestoreSuite } from './firestore/suite.ts';
import { pubsubSuite } from './pubsub/suite.ts';
import { runEmbedded, runOfficial } from './run.ts';
import { asDocumented, conformanceTable, refused, type Section } from './table.ts';

const TABLE = fileURLToPath(new URL('../../conformance.md', import.meta.url));

type Started = Readonly<{ address: string; close(): Promise<void> }>;

/** `start` is undefined where Google's emulator is missing, or does not exist. */
async function sectionOf<Own extends World>(
  suite: Suite<Own>,
  start?: () => Promise<Started>,
): Promise<Section> {
  const embedded = await runEmbedded(suite);
  const emulator = await start?.();
  try {
    const official = emulator === undefined ? undefined : await runOfficial(suite, emulator.address);
    return { service: suite.service, embedded, official };
  } finally {
    await emulator?.close();
  }
}

const found = findOfficial();
if (!found.ok) console.log(`skipped: Google's emulators: ${found.missing}`);
const sections = [
  await sectionOf(pubsubSuite, found.ok ? () => startOfficialPubsub() : undefined),
  await sectionOf(firestoreSuite, found.ok ? () => startOfficialFirestore() : undefined),
  await sectionOf(cloudTasksSuite),
];
for (const { service, embedded, official } of sections) {
  for (const [server, outcomes] of [
    ['embedded', embedded],
    ['official', official ?? []],
  ] as const) {
    const differing = outcomes.filter(({ verdict }) => verdict === 'differs');
    if (outcomes.length > 0) {
      const beside = refused(outcomes) > 0 ? `, ${refused(outcomes)} refused` : '';
      console.log(`${service}, ${server}: ${asDocumented(outcomes)} as documented${beside}`);
    }
    if (server === 'embedded')
      for (const { title, seen } of differing) console.log(`  differs: ${title}: ${seen}`);
  }
}
if (found.ok) {
  writeFileSync(TABLE, conformanceTable(sections, found.versions));
  console.log(`wrote ${TABLE}`);
}
process.exitCode = sections.some(({ embedded }) => embedded.some(({ verdict }) => verdict === 'differs'))
  ? 1
  : 0;
