/**
 * The figures of speed. With the peer each side uses the same client: one with automatic pipelining, and one with
 * ioredis's defaults, as that library's documentation makes it.
 */
import { Redis } from 'ioredis';
import { redisClaims } from 'pubsub-guarantees/dedup/redis';
import { recordedCommands, sendRaw } from './commands.ts';
import { deduplicating, deliverAll, freshMessages, inLanes, LANES } from './messages.ts';
import { type Peer, startPeer } from './peer.ts';
import { medianPace, type Pace, round, type Side } from './throughput.ts';

const ROUNDS = 5;
/** A round: 10,000 messages of each side. */
const [SLICES, SLICE] = [20, 500];
const WARM_UP_SLICES = 8;

export async function speed(port: number, pipelining: Redis, print: (line: string) => void): Promise<object> {
  const plain = new Redis(port, '127.0.0.1');
  const peers: Peer[] = [];
  try {
    for (const enableAutoPipelining of [true, false]) {
      const peer = await startPeer(port, print, enableAutoPipelining);
      if (peer === undefined) break;
      peers.push(peer);
    }
    const [pipeliningPeer, plainPeer] = peers;
    const sides: Record<string, Side> = {
      ours: middleware(pipelining),
      raw: async (count) => {
        const commands = await recordedCommands(freshMessages(count));
        return () => inLanes(commands, LANES, () => (both) => sendRaw(pipelining, both));
      },
      ...(pipeliningPeer !== undefined && { peer: ofPeer(pipeliningPeer) }),
      ...(plainPeer !== undefined && { oursPlain: middleware(plain), peerPlain: ofPeer(plainPeer) }),
    };
    return await compared(sides, () => pipelining.flushall(), print);
  } finally {
    for (const peer of peers) peer.close();
    plain.disconnect();
  }
}

async function compared(
  sides: Readonly<Record<string, Side>>,
  empty: () => Promise<unknown>,
  print: (line: string) => void,
): Promise<object> {
  const names = Object.keys(sides);
  const rounds: (readonly Pace[])[] = [];
  // The first is not counted: scripts get known, code gets compiled.
  for (let number = 0; number <= ROUNDS; number += 1) {
    await empty();
    const paces = await round(Object.values(sides), number === 0 ? WARM_UP_SLICES : SLICES, SLICE);
    if (number === 0) continue;
    rounds.push(paces);
    const texts = names.map((name, side) => `${name} ${paces[side]?.perSecond}`);
    print(`round ${number}, messages/s: ${texts.join(', ')}`);
  }
  const paces: Record<string, Pace> = {};
  print(`medians of ${ROUNDS} rounds, ${SLICES * SLICE} fresh messages of each, ${LANES} at a time:`);
  for (const [side, name] of names.entries()) {
    const pace = medianPace(rounds.flatMap((all) => all[side] ?? []));
    paces[name] = pace;
    const figures = `${String(pace.perSecond).padStart(7)} messages/s ${pace.cpuMicros.toFixed(1).padStart(6)} µs CPU a message`;
    print(`  ${(TEXTS[name] ?? name).padEnd(46)}${figures}`);
  }
  const { ours, raw, peer, oursPlain, peerPlain } = paces;
  const ratios = {
    toRaw: ratio(ours, raw),
    toPeer: ratio(oursPlain, peerPlain),
    toPeerPipelining: ratio(ours, peer),
  };
  const extraCpuMicros = Number(((ours?.cpuMicros ?? 0) - (raw?.cpuMicros ?? 0)).toFixed(1));
  print(`to its commands raw ${ratios.toRaw} (at least 0.6), ${extraCpuMicros} µs CPU more a message`);
  if (ratios.toPeer !== undefined) {
    print(
      `to message-queue-toolkit ${ratios.toPeer} (at least 2); both pipelining ${ratios.toPeerPipelining}`,
    );
  }
  return { paces, extraCpuMicros, ratios };
}

const TEXTS: Readonly<Record<string, string>> = {
  ours: 'the whole middleware, pipelining client',
  raw: 'its two commands raw, pipelining client',
  peer: 'message-queue-toolkit, pipelining client',
  oursPlain: 'the whole middleware, plain client',
  peerPlain: 'message-queue-toolkit, plain client',
};

const ratio = (a: Pace | undefined, b: Pace | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : Number((a.perSecond / b.perSecond).toFixed(3));

function middleware(redis: Redis): Side {
  const handler = deduplicating(redisClaims(redis));
  return async (count) => {
    const messages = freshMessages(count);
    return () => deliverAll(handler, messages, LANES, 'handled');
  };
}

function ofPeer(peer: Peer): Side {
  return async (count) => {
    const messages = freshMessages(count);
    return () => inLanes(messages, LANES, () => peer.deliver);
  };
}
