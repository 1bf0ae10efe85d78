/** The three servers of the local stack and nothing else, for as long as standard input is open. */
import { startCloudTasks, startFirestore, startPubsub, systemClock } from 'pubsub-guarantees-emulator';

const [pubsub, firestore, tasks] = process.argv.slice(2).map(Number);
const clock = systemClock();
const at = (port: number | undefined) => ({ clock, ...(port !== undefined && { port }) });
await Promise.all([startPubsub(at(pubsub)), startFirestore(at(firestore)), startCloudTasks(at(tasks))]);
process.stdin.once('end', () => process.exit(0)).resume();
