/** The local stack's Cloud Tasks and nothing else, for as long as standard input is open; says where it listens. */
import { startCloudTasks, systemClock } from 'pubsub-guarantees-emulator';

const tasks = await startCloudTasks({ clock: systemClock(), appEngine: () => 'http://127.0.0.1:9' });
process.stdout.write(`${JSON.stringify({ tasks: tasks.address })}\n`);
process.stdin.once('end', () => process.exit(0)).resume();
