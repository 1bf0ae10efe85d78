/**
 * The three servers of the local stack and nothing else, for as long as standard input is open. Each call to Firestore
 * takes so many milliseconds more as the fourth argument says.
 */
import {
  createFaults,
  startCloudTasks,
  startFirestore,
  startPubsub,
  systemClock,
} from 'pubsub-guarantees-emulator';

const [pubsub, firestore, tasks, storeDelayMs = 0] = process.argv.slice(2).map(Number);
const clock = systemClock();
const faults = createFaults();
if (storeDelayMs > 0) {
  const action = { type: 'delay', ms: storeDelayMs };
  faults.set({ rules: [{ service: 'firestore', method: '*', action }] });
}
const at = (port: number | undefined) => ({ clock, faults, ...(port !== undefined && { port }) });
await Promise.all([startPubsub(at(pubsub)), startFirestore(at(firestore)), startCloudTasks(at(tasks))]);
process.stdin.once('end', () => process.exit(0)).resume();
