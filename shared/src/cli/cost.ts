/**
 * What a month costs, at list prices, from the operations that the tests count (docs/costs.md). Pure.
 * What has no price here is printed as an amount: a price that could not be checked is not printed.
 */

export type CostQuestion = Readonly<{
  /** Messages a second, on the average of a month. */
  rate: number;
  /** Data and attributes of one, in bytes. */
  bytes: number;
  once: 'off' | 'firestore' | 'redis';
  later: 'off' | 'queue' | 'ledger';
  order: boolean;
  /** Deliveries of a message that was processed already, for each message: 0 to 10. */
  duplicates: number;
  region: 'us-west1' | 'nam5';
}>;

export type CostLine = Readonly<{
  what: string;
  amount: string;
  /** In US dollars a month; absent: no list price is known here. */
  dollars?: number;
}>;

/**
 * Copies of the lists, read on 30 November 2026 (that of logs: as Google names it, not looked up again); the copies are
 * older. Free quotas are left out.
 */
const PRICES = {
  /** A document read, write and delete. https://cloud.google.com/firestore/pricing */
  firestore: {
    'us-west1': { read: 0.3e-6, write: 0.9e-6, remove: 0.1e-6 },
    nam5: { read: 0.6e-6, write: 1.8e-6, remove: 0.2e-6 },
  },
  /** A byte, in or out. https://cloud.google.com/pubsub/pricing */
  pubsubByte: 40 / 2 ** 40,
  /** An operation: a call or a delivery of up to 32 KB. https://cloud.google.com/tasks/pricing */
  task: 0.4e-6,
  /** A byte of a log that is kept for 30 days. https://cloud.google.com/stackdriver/pricing */
  logByte: 0.5 / 2 ** 30,
} as const;

const SECONDS = 30 * 86_400;
/** Pub/Sub charges at least so many bytes for a message. */
const LEAST_BYTES = 1_000;
/** A request's line in Cloud Run's log, as those that were seen; your own may be longer. */
const LOG_LINE_BYTES = 1_200;
const TASK_BYTES = 100_000;
const TASK_OPERATION_BYTES = 32_768;
const CHUNK_BYTES = 900_000;

type Documents = Readonly<{ reads: number; writes: number; deletes: number }>;

export function costs(question: CostQuestion): readonly CostLine[] {
  const { rate, bytes, once, later, order, duplicates, region } = question;
  const messages = rate * SECONDS;
  const deliveries = messages * (1 + duplicates);
  // A delayed message comes back through its source where something else is done with it.
  const passes = later !== 'off' && (once !== 'off' || order) ? 2 : 1;
  const charged = Math.max(bytes, LEAST_BYTES);
  const pubsub = deliveries * charged * passes + messages * charged * passes;

  const firestore = (what: string, count: number, { reads, writes, deletes }: Documents): CostLine => {
    const price = PRICES.firestore[region];
    return {
      what,
      amount: `${round(count * reads)} reads, ${round(count * writes)} writes, ${round(count * deletes)} deletes`,
      dollars: count * (reads * price.read + writes * price.write + deletes * price.remove),
    };
  };
  const lines: CostLine[] = [
    { what: 'Pub/Sub, in and out of the function', amount: gib(pubsub), dollars: pubsub * PRICES.pubsubByte },
  ];
  if (once === 'firestore') {
    lines.push(firestore('once, in Firestore', messages, { reads: 0, writes: 2, deletes: 1 }));
    if (duplicates > 0)
      lines.push(firestore('once, duplicates', messages * duplicates, { reads: 1, writes: 1, deletes: 0 }));
  }
  if (once === 'redis') {
    lines.push({ what: 'once, in Redis: memory for 8 days', amount: gib(rate * 8 * 86_400 * 104) });
  }
  if (order) lines.push(firestore('in order, in its turn', messages, { reads: 0, writes: 2, deletes: 0 }));
  if (later !== 'off') {
    const isLarge = bytes > TASK_BYTES;
    const operations = messages * 2 * Math.ceil((isLarge ? 1_000 : bytes) / TASK_OPERATION_BYTES);
    lines.push({
      what: 'later, tasks and their calls',
      amount: `${round(operations)} operations`,
      dollars: operations * PRICES.task,
    });
    lines.push({
      what: 'later, published when due',
      amount: gib(messages * charged),
      dollars: messages * charged * PRICES.pubsubByte,
    });
    if (isLarge) lines.push(firestore('later, large messages', messages, payload(bytes)));
    if (later === 'ledger') {
      lines.push(firestore('later, the schedule ledger', messages, { reads: 3, writes: 3, deletes: 1 }));
    }
  }
  const requests = deliveries * passes + (later === 'off' ? 0 : messages);
  const logged = requests * LOG_LINE_BYTES;
  lines.push({
    what: 'request logs of the functions and the republisher',
    amount: gib(logged),
    dollars: logged * PRICES.logByte,
  });
  lines.push({ what: 'requests, and the time of their instances', amount: `${round(requests)} requests` });
  return lines;
}

/** As counted for one chunk and for twelve; the first eight of several are written twice. */
function payload(bytes: number): Documents {
  const chunks = Math.ceil(bytes / CHUNK_BYTES);
  const twice = chunks === 1 ? 0 : Math.min(8, chunks);
  return { reads: chunks + 3, writes: 2 * chunks + 2 + twice, deletes: chunks + 1 };
}

const round = (value: number): string => Math.round(value).toLocaleString('en-US');
const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
