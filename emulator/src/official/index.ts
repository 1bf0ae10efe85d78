/** Google's own emulators, where they are installed: found, started, and never left behind. */
export {
  type FindOptions,
  type FoundOfficial,
  findOfficial,
  type MissingOfficial,
} from './find.ts';
export type { OfficialService } from './jars.ts';
export {
  type OfficialFirestore,
  type OfficialOptions,
  type OfficialPubsub,
  type RunningOfficial,
  startOfficialFirestore,
  startOfficialPubsub,
} from './start.ts';
