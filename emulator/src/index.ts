/** The local stack, for use inside tests: its servers one by one, all of them on one clock, or the whole toolkit. */
export { type CloudTasksOptions, type RunningCloudTasks, startCloudTasks } from './cloud-tasks/index.ts';
export { type Cancel, type Clock, systemClock } from './clock.ts';
export {
  type Action as FaultAction,
  createFaults,
  type FaultRecord,
  type Faults,
  type Plan as FaultPlan,
  type RestartSpec,
  type Rule as FaultRule,
} from './faults/index.ts';
export { type FirestoreOptions, type RunningFirestore, startFirestore } from './firestore/index.ts';
export { freePort, freePorts } from './free-ports.ts';
export type { RunningServer } from './grpc-server.ts';
export {
  answering,
  type PostgresBinaries,
  postgresBinaries,
  type RunningPostgres,
  startPostgres,
  unprivileged,
} from './postgres/postgres-server.ts';
export { type PubsubOptions, type RunningPubsub, startPubsub } from './pubsub/index.ts';
export { SeedError } from './seed/named.ts';
export { type Seed, type SeedDescription, seedFrom } from './seed/seed.ts';
export { parseSeed } from './seed/seed-file.ts';
export { childrensCpuMillisecondsDuring, turnsDuring } from './spent.ts';
export { PROGRAM_PRELOAD } from './stack/child.ts';
export { onOrphaned } from './stack/orphan.ts';
export type { SavedStack } from './stack/saved-stack.ts';
export { type Service, UnsupportedError } from './stack/services.ts';
export { type Stack, type StackAddresses, type StackState, startStack } from './stack/stack.ts';
export type { StackClock } from './stack/stack-clock.ts';
export type { StackFaults } from './stack/stack-faults.ts';
export type { StackOptions } from './stack/stack-options.ts';
export { startToolkit, type Toolkit, type ToolkitAddresses, type ToolkitOptions } from './stack/toolkit.ts';
export { until } from './until.ts';
