/** The local stack, for use inside tests: its servers one by one, or all of it. */
export { type CloudTasksOptions, type RunningCloudTasks, startCloudTasks } from './cloud-tasks/index.ts';
export { type Cancel, type Clock, systemClock } from './clock.ts';
export { type FirestoreOptions, type RunningFirestore, startFirestore } from './firestore/index.ts';
export { freePort, freePorts } from './free-ports.ts';
export type { RunningServer } from './grpc-server.ts';
export { type PubsubOptions, type RunningPubsub, startPubsub } from './pubsub/index.ts';
export { onOrphaned } from './stack/orphan.ts';
export { type Stack, type StackAddresses, type StackOptions, startStack } from './stack/stack.ts';
export type { StackClock } from './stack/stack-clock.ts';
