/**
 * A consumer that was stopped and starts again: it does nothing but the sweep, as a process of its own, and says how long
 * the stream took and how much memory the process had at most.
 */
import { ack, type Handler, silent } from 'pubsub-guarantees';
import { orderedDelivery } from 'pubsub-guarantees/order';
import { firestoreStreams } from 'pubsub-guarantees/order/firestore';
import { withClient } from '../once-firestore/clients.ts';
import { CONSUMER } from './receiving.ts';

/** What the sweep of the functions has. */
const SWEEP_MS = 60_000;

const [firestorePort, total] = process.argv.slice(2);
let last = 1;
const next: Handler = async (message) => {
  const number = Number(message.attributes['sequence']);
  if (number !== last + 1) throw new Error(`${number} ran after ${last}`);
  last = number;
  return ack();
};
const elapsedMs = await withClient(Number(firestorePort), async (firestore) => {
  const sweep = orderedDelivery(firestoreStreams(firestore)).sweep(next);
  const begun = performance.now();
  while (last < Number(total)) {
    const deadline = performance.now() + SWEEP_MS;
    const { signal } = new AbortController();
    const before = last;
    await sweep({ consumer: CONSUMER, now: Date.now, deadline, signal, log: silent });
    if (last === before) throw new Error(`a sweep ran nothing after ${last} of ${total}`);
  }
  return performance.now() - begun;
});
// In kilobytes, on every system but Windows.
const peakMb = Math.round(process.resourceUsage().maxRSS / 1_024);
process.stdout.write(`${JSON.stringify({ elapsedMs, peakMb, ran: last })}\n`);
