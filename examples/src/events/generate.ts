/**
 * The order events of the shipped file. Seeded: the same seed gives the same file, byte for byte.
 *
 * 320 publish calls over ten seconds, by three publishers: payments that are published up to three times (once),
 * reminders one to five seconds later (later), the steps of ten orders, each step by the publisher that owns its
 * number and all of them shuffled (in order), and the whole way through the pipeline.
 */

type Line = Readonly<{
  topic: string;
  publisher: string;
  afterMs: number;
  data?: string;
  dataBase64?: string;
  attributes: Readonly<Record<string, string>>;
}>;

const SEED = 20_300_131;
const SPAN_MS = 10_000;
const PUBLISHERS = ['p1', 'p2', 'p3'] as const;
const KEYS = 10;
const STEPS = 12;

export function generateEvents(seed: number = SEED): string {
  const random = randomFrom(seed);
  const lines = [...payments(random), ...reminders(random), ...orderSteps(random), ...pipeline(random)];
  return lines
    .toSorted((left, right) => left.afterMs - right.afterMs)
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

type Random = () => number;

/** mulberry32: 32 bits of state are plenty for a file of examples. */
function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const whole = (random: Random, below: number): number => Math.floor(random() * below);
const publisherOf = (number: number): string => PUBLISHERS[number % PUBLISHERS.length] ?? 'p1';
const order = (number: number): string => `order-${String(number).padStart(3, '0')}`;

/** 40 payments; every second one is published again once or twice, by whichever publisher. */
function payments(random: Random): Line[] {
  return Array.from({ length: 40 }, (_, index) => {
    const attributes = { dedupId: `payment-${order(index)}`, tenant: index % 3 === 0 ? 'łódź' : 'oslo' };
    const content = contentOf(random, index, { event: 'payment', order: order(index), cents: 100 + index });
    const copies = index % 2 === 0 ? 2 + whole(random, 2) : 1;
    const first = whole(random, SPAN_MS - 2_000);
    return Array.from({ length: copies }, (__, copy): Line => {
      const afterMs = first + copy * whole(random, 1_000);
      return { topic: 'dedup-in', publisher: publisherOf(whole(random, 3)), afterMs, ...content, attributes };
    });
  }).flat();
}

/** 50 reminders, one to five seconds later; every eighth without a delay, some without a dedupId. */
function reminders(random: Random): Line[] {
  return Array.from({ length: 50 }, (_, index): Line => {
    const delay = String(1 + whole(random, 5));
    return {
      topic: 'delay-in',
      publisher: publisherOf(index),
      afterMs: whole(random, SPAN_MS),
      ...contentOf(random, index, { event: 'reminder', order: order(index), delay }),
      attributes: {
        kind: 'reminder',
        ...(index % 5 !== 0 && { dedupId: `reminder-${order(index)}` }),
        ...(index % 8 !== 7 && { delay }),
      },
    };
  });
}

/** Ten orders of twelve steps. Step n belongs to publisher n mod 3, and the steps leave in a shuffled order. */
function orderSteps(random: Random): Line[] {
  return Array.from({ length: KEYS }, (_, key) =>
    shuffled(random, STEPS).map(
      (step, place): Line => ({
        topic: 'fifo-in',
        publisher: publisherOf(step),
        afterMs: Math.floor((place * SPAN_MS) / STEPS) + whole(random, 400),
        ...contentOf(random, key + step, { event: 'step', order: order(key), step }),
        attributes: { sequence: String(step), sequenceKey: order(key), ...(step === 1 && { first: 'yes' }) },
      }),
    ),
  ).flat();
}

/** Six more orders of eight steps, some published twice; and notices that are delayed and published twice. */
function pipeline(random: Random): Line[] {
  const steps = Array.from({ length: 6 }, (_, index) => 100 + index).flatMap((key) =>
    shuffled(random, 8).flatMap((step, place): Line[] => {
      const line: Line = {
        topic: 'pipeline-in',
        publisher: publisherOf(step),
        afterMs: Math.floor((place * SPAN_MS) / 8) + whole(random, 600),
        ...contentOf(random, key + step, { event: 'step', order: order(key), step }),
        attributes: {
          dedupId: `step-${order(key)}-${step}`,
          sequence: String(step),
          sequenceKey: order(key),
        },
      };
      return step % 4 === 0 ? [line, { ...line, afterMs: line.afterMs + whole(random, 900) }] : [line];
    }),
  );
  const notices = Array.from({ length: 20 }, (_, index) => {
    const attributes = { dedupId: `notice-${order(index)}`, delay: String(1 + whole(random, 4)) };
    const content = contentOf(random, index, { event: 'notice', order: order(index) });
    const afterMs = whole(random, SPAN_MS - 1_000);
    const line: Line = {
      topic: 'pipeline-in',
      publisher: publisherOf(index),
      afterMs,
      ...content,
      attributes,
    };
    return index % 2 === 0 ? [line, { ...line, afterMs: afterMs + whole(random, 1_000) }] : [line];
  }).flat();
  return [...steps, ...notices];
}

/** Text, every seventh time bytes that are no UTF-8, every eleventh time nothing: the attributes are the message. */
function contentOf(
  random: Random,
  index: number,
  text: Readonly<Record<string, unknown>>,
): { data?: string; dataBase64?: string } {
  if (index % 11 === 10) return {};
  if (index % 7 !== 6) return { data: JSON.stringify(text) };
  const bytes = Buffer.from([
    0x00,
    0xff,
    0xfe,
    0x80,
    0xc3,
    0x28,
    ...Array.from({ length: 8 }, () => whole(random, 256)),
  ]);
  return { dataBase64: bytes.toString('base64') };
}

function shuffled(random: Random, count: number): number[] {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  for (let index = count - 1; index > 0; index -= 1) {
    const other = whole(random, index + 1);
    [numbers[index], numbers[other]] = [numbers[other] ?? 0, numbers[index] ?? 0];
  }
  return numbers;
}
