/**
 * Ports that no process uses, for servers that are told theirs before they start. They lie below those that systems hand
 * out by themselves (from 32,768 or 49,152 on): until the server has its port, any connection and any server that takes
 * what it gets could be given that one. Another process may still take it in between, which then is a clear error of the
 * server that wanted it; this process is not given the same port twice.
 */
import { createServer } from 'node:net';

const FIRST = 20_000;
const COUNT = 12_000;
/** Ports that were given away may be free again by then. */
const REMEMBERED = COUNT / 2;

const given = new Set<number>();

export async function freePorts(count: number): Promise<readonly number[]> {
  return await Promise.all(Array.from({ length: count }, freePort));
}

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (given.has(port)) continue;
    if (given.size >= REMEMBERED) given.clear();
    given.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port was found among ${COUNT} from ${FIRST} on`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
