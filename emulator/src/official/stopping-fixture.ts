/**
 * A program that runs an emulator (`java`) or the stand-in for one, prints the processes and the port as JSON, and
 * ends by a signal, or at SIGUSR2 as its arguments say (`close`, `throw`). `guard-only`: without the kernel's help.
 */
import { freePort } from '../free-ports.ts';
import { onOrphaned } from '../stack/orphan.ts';
import { launch } from './launch.ts';
import { startOfficialPubsub } from './start.ts';
import { kernelEnds } from './tied.ts';
import { LISTENS, standIn } from './testing.ts';

const [how, what, ties] = process.argv.slice(2);

async function start() {
  if (what === 'java') return startOfficialPubsub();
  const port = await freePort();
  const kernel = ties !== 'guard-only' && kernelEnds();
  return { port, ...(await launch({ ...standIn(port, LISTENS), kernel })) };
}

const running = await start();
const stop = (): void => void running.close().then(() => process.exit(0));
process.on('SIGINT', stop);
process.on('SIGTERM', stop);
onOrphaned(stop);
// So that it stays although its emulator ends.
setInterval(() => undefined, 1_000);
process.on('SIGUSR2', () => {
  if (how === 'close') stop();
  else throw new Error('thrown by the fixture');
});
const { pid, guardPid, port } = running;
process.stdout.write(`${JSON.stringify({ self: process.pid, pid, guardPid, port })}\n`);
