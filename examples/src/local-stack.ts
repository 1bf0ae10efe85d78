/**
 * Where the examples find the local stack. Google's clients go on trying for minutes when no server answers, so this is
 * looked at first, and an example that does not come to its end is ended.
 */
import { connect } from 'node:net';

type Variable = 'PUBSUB_EMULATOR_HOST' | 'FIRESTORE_EMULATOR_HOST';

const ANSWER_MS = 2_000;
/** Far above what any example needs. */
const LONGEST_RUN_MS = 180_000;

/** Resolves with the project; ends the process with one line and exit code 1 when the stack is not there. */
export async function localProject(...variables: readonly Variable[]): Promise<string> {
  for (const variable of variables) {
    const address = process.env[variable];
    if (address === undefined) end(`${variable} is not set; accepted: host:port, as npm start prints it`);
    if (!(await answers(address))) end(`no server answers at ${variable}=${address}: is npm start running?`);
  }
  // Otherwise Google's clients look for a metadata server, and warn that there is none.
  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  setTimeout(() => end(`not finished within ${LONGEST_RUN_MS / 1_000} s`), LONGEST_RUN_MS).unref();
  return process.env['GOOGLE_CLOUD_PROJECT'] ?? 'demo-project';
}

/** The stack's time, which may have been moved, where LOCAL_STACK_CONTROL says where to ask; else the machine's. */
export async function localTime(): Promise<number> {
  const control = process.env['LOCAL_STACK_CONTROL'];
  if (control === undefined) return Date.now();
  const answer = (await (await fetch(`${control}/clock`)).json()) as { nowMs: number };
  return answer.nowMs;
}

function answers(address: string): Promise<boolean> {
  const [host = '', port = ''] = address.split(':');
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65_535) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), timeout: ANSWER_MS });
    const settle = (isThere: boolean) => (): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('connect', settle(true)).once('error', settle(false));
    // A process that was kept from work finds the time over before it looks at the socket: that comes in this turn.
    socket.once('timeout', () => setImmediate(settle(false)));
  });
}

function end(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
