/**
 * How long a developer waits: from starting the processes until every server has answered a call over its socket.
 * The local stack's three servers against the two that Google ships, in turn, several times.
 */
import { median } from '../median.ts';
import { officialEmulators } from '../servers/java.ts';
import { type RunningServers, startEmbedded, startOfficial } from '../servers/start.ts';

const ROUNDS = 5;

export async function ready(print: (line: string) => void): Promise<object> {
  const official = officialEmulators(print);
  const embedded: number[] = [];
  const java: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    embedded.push(await timeOf(startEmbedded()));
    if (official !== undefined) java.push(await timeOf(startOfficial(official)));
    print(`round ${round}: embedded ${embedded.at(-1)} ms${official ? `, official ${java.at(-1)} ms` : ''}`);
  }
  const ours = median(embedded);
  if (official === undefined) return { embeddedMs: ours };
  const theirs = median(java);
  print('');
  print('                       median ms to the first answer of every server');
  print(`embedded (3 servers)   ${ours}`);
  print(`official (2 servers)   ${theirs}`);
  return { embeddedMs: ours, officialMs: theirs, ratio: Number((ours / theirs).toFixed(3)) };
}

async function timeOf(starting: Promise<RunningServers>): Promise<number> {
  const servers = await starting;
  await servers.close();
  return servers.readyMs;
}
