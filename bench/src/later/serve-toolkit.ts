/** The whole toolkit, as `npm start` runs it, for as long as standard input is open; says where it listens. */
import { startToolkit } from 'pubsub-guarantees-emulator';

const toolkit = await startToolkit();
process.stdout.write(`${JSON.stringify(toolkit.addresses)}\n`);
process.stdin.once('end', () => void toolkit.close().then(() => process.exit(0))).resume();
