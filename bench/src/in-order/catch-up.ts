/** A stopped consumer with many messages of one stream held: how long it takes to catch up, and its memory. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { StreamStore } from 'pubsub-guarantees/order';
import { firestoreStreams } from 'pubsub-guarantees/order/firestore';
import type { RunningServers } from '../servers/start.ts';
import { heldStream, refOf } from './held-stream.ts';
import { connect } from './world.ts';

export type CatchUp = Readonly<{ held: number; elapsedMs: number; perMessageMs: number; peakMb: number }>;

const CONSUMER_FILE = fileURLToPath(new URL('./catch-up-consumer.ts', import.meta.url));
/**
 * The heap that Node gives itself in a container of 256 MiB or a little more: 128 MiB for what is old, and V8's share of
 * that for what is young (`YoungGenerationSizeFromOldGenerationSize` in its `heap.cc`: two halves of 1 MiB each).
 *
 * Both are said, because each would come from the machine's memory. With much of that, garbage is left for long, and the
 * size of the process says little about what it needs. And the young halves grow to 64 MiB beside an old generation of
 * 128: V8 collects it without pause as soon as less than a half's size is free in it. That is after some thousands of
 * messages, and a long run is slow then where a short one ends before.
 */
const FLAGS = ['--conditions=source', '--max-old-space-size=128', '--max-semi-space-size=1'];
const LIMIT_MS = 600_000;

type Caught = Readonly<{ elapsedMs: number; peakMb: number; ran: number }>;

export async function catchUp(servers: RunningServers, held: number): Promise<CatchUp> {
  const world = connect(servers);
  try {
    const store = firestoreStreams(world.firestore);
    await released(store, await heldStream(store, held));
  } finally {
    await world.close();
  }
  const args = [...FLAGS, CONSUMER_FILE, String(servers.firestorePort), String(held + 1)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: LIMIT_MS });
  const { elapsedMs, peakMb, ran } = JSON.parse(stdout) as Caught;
  if (ran !== held + 1) throw new Error(`${ran} of ${held + 1} messages ran`);
  return { held, elapsedMs, peakMb, perMessageMs: elapsedMs / held };
}

/** The missing number has run, and the stream is as a process leaves it whose time was over: due, without a lease. */
async function released(store: StreamStore, key: string): Promise<void> {
  const ref = refOf(key);
  const { state, version } = await store.read(ref);
  if (state === undefined) throw new Error('nothing is held');
  const gap = { waitingSince: null, gapAt: null, repairedAt: null };
  const patch = { last: 1, ...gap, readyAt: Date.now(), commit: randomUUID() };
  if ((await store.commit(ref, { version, state }, { patch })) === undefined)
    throw new Error('the stream changed');
}
