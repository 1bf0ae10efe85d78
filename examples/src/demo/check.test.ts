import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from './check.ts';
import type { Arrival, DeadLetter, Published } from './observed.ts';
import { renderJson, renderReport } from './table.ts';

const ORIGIN = '2030-01-31T08:00:00.000Z';
const ORIGIN_MS = Date.parse(ORIGIN);
let ids = 0;

function call(topic: string, text: string, attributes: Record<string, string> = {}, extra = {}): Published {
  ids += 1;
  const event = { line: ids, topic, publisher: 'p1', afterMs: 0, data: Buffer.from(text), attributes };
  return { event: { ...event, ...extra }, messageId: String(ids) };
}

/** The message as the toolkit should deliver it. */
function arrives(published: Published, change: Partial<Arrival> = {}): Arrival {
  ids += 1;
  const { delay, deliverAt, ...kept } = published.event.attributes;
  const dedupId =
    kept['dedupId'] ?? `projects/p/subscriptions/${published.event.topic}-push/${published.messageId}`;
  return {
    topic: published.event.topic.replace('-in', '-out'),
    messageId: `out-${ids}`,
    data: published.event.data,
    attributes: { ...kept, dedupId, originPublishTime: ORIGIN, ...(delay && { deliveredAfter: delay }) },
    atMs: ORIGIN_MS + Number(delay ?? 0) * 1_000 + (deliverAt === undefined ? 20 : 60_000),
    effect: true,
    ...change,
  };
}

const judge = (published: Published[], arrivals: Arrival[], deadLetters: DeadLetter[] = []) =>
  check({ published, arrivals, deadLetters });
const kinds = (report: ReturnType<typeof judge>) => report.violations.map(({ kind }) => kind);
const step = (number: number, key = 'k') =>
  call('fifo-in', `step ${number}`, { sequence: String(number), sequenceKey: key });

test('finds nothing in a clean run over all lanes, and counts repeats on both sides', () => {
  const payment = call('dedup-in', 'pay', { dedupId: 'pay-1' });
  const again = call('dedup-in', 'pay', { dedupId: 'pay-1' });
  const plain = call('dedup-in', 'no id');
  const later = call('delay-in', '', { delay: '2', kind: 'attribute-only' });
  const steps = [step(2), step(1)];
  const whole = call('pipeline-in', 'x', { delay: '1', dedupId: 'n' });
  const arrivals = [payment, plain, later, ...steps.toReversed(), whole].map((one) => arrives(one));
  const report = judge([payment, again, plain, later, ...steps, whole], arrivals);
  assert.deepEqual(report.violations, []);
  assert.equal(report.held, true);
  const { published, distinct, duplicatesPublished, delivered, duplicatesDelivered } = report.total;
  assert.deepEqual(
    { published, distinct, duplicatesPublished, delivered, duplicatesDelivered },
    { published: 7, distinct: 6, duplicatesPublished: 1, delivered: 6, duplicatesDelivered: 0 },
  );
  assert.equal(report.total.maxLatenessMs, 20);
});

test('a message whose handler ran twice is a duplicate', () => {
  const payment = call('dedup-in', 'pay', { dedupId: 'pay-1' });
  const report = judge([payment], [arrives(payment), arrives(payment)]);
  assert.deepEqual(kinds(report), ['duplicate']);
  assert.equal(report.total.duplicatesDelivered, 1);
  assert.match(report.violations[0]!.text, /dedup-in line \d+ \(dedupId "pay-1"\): delivered 2 times/);
});

test('a copy that the gate recognised is a repeat and no violation, a redelivery is not even that', () => {
  const payment = call('dedup-in', 'pay', { dedupId: 'pay-1' });
  const first = arrives(payment);
  const arrivals = [first, { ...first, effect: false }, arrives(payment, { effect: false })];
  const report = judge([payment], arrivals);
  assert.equal(report.held, true);
  assert.equal(report.total.repeats, 1);
});

test('a copy that was published on purpose to a lane without once is not put down to the crash', () => {
  const reminder = call('delay-in', 'r', { dedupId: 'r' });
  const again = call('delay-in', 'r', { dedupId: 'r' });
  const gone = { effect: false };
  const arrivals = [arrives(reminder), arrives(again, gone), arrives(again, gone)];
  const { total, held } = judge([reminder, again], arrivals);
  assert.deepEqual([held, total.foreseen, total.repeats], [true, 1, 1]);
});

test('an arrival before its delay is early, by the forwarded publish time alone', () => {
  const later = call('delay-in', 'r', { delay: '2' });
  const report = judge([later], [arrives(later, { atMs: ORIGIN_MS + 1_999 })]);
  assert.deepEqual(kinds(report), ['early']);
  assert.match(report.violations[0]!.text, /arrived 1 ms early/);
  assert.equal(judge([later], [arrives(later, { atMs: ORIGIN_MS + 2_000 })]).held, true);
});

test('an arrival before deliverAt is early, and a later one counts as lateness', () => {
  const later = call('pipeline-in', 'r', { deliverAt: '2030-01-31T09:00:00+01:00' });
  assert.deepEqual(kinds(judge([later], [arrives(later, { atMs: ORIGIN_MS - 1 })])), ['early']);
  assert.equal(judge([later], [arrives(later, { atMs: ORIGIN_MS + 123 })]).total.maxLatenessMs, 123);
});

test('an early repeat is a violation even when the gate dropped it', () => {
  const later = call('delay-in', 'r', { delay: '2' });
  const early = arrives(later, { atMs: ORIGIN_MS, effect: false });
  assert.deepEqual(kinds(judge([later], [arrives(later), early])), ['early']);
});

test('a delay whose publish time was not forwarded cannot be shown to hold', () => {
  const later = call('delay-in', 'r', { delay: '2' });
  const { originPublishTime: _, ...attributes } = arrives(later).attributes;
  assert.deepEqual(kinds(judge([later], [arrives(later, { attributes })])), ['early']);
});

test('a lane without the promise is not judged by it', () => {
  const asks = call('dedup-in', 'r', { delay: '5', sequence: '7', sequenceKey: 'k' });
  assert.equal(judge([asks], [arrives(asks, { atMs: ORIGIN_MS })]).held, true);
});

test('a number that arrives before its predecessor is out of order', () => {
  const steps = [step(1), step(2), step(3)];
  const [one, two, three] = steps.map((published) => arrives(published));
  const report = judge(steps, [one!, three!, two!]);
  assert.deepEqual(new Set(kinds(report)), new Set(['out of order']));
  assert.ok(report.total.outOfOrder >= 1);
  assert.match(report.violations[0]!.text, /key "k" number 3\): arrived when number 2 was next/);
});

test('order is judged by the arrival, not by when the handler ran, and per key', () => {
  const steps = [step(1), step(2)];
  const [one, two] = steps.map((published) => arrives(published));
  const other = step(1, 'other');
  assert.equal(judge([...steps, other], [one!, arrives(other), two!, { ...one!, effect: false }]).held, true);
  assert.deepEqual(
    kinds(judge(steps, [{ ...two!, effect: false }, one!, two!])).includes('out of order'),
    true,
  );
});

test('the ordering key stands for the sequence key', () => {
  const steps = [1, 2].map((number) =>
    call('fifo-in', `${number}`, { sequence: String(number) }, { orderingKey: 'ok' }),
  );
  const arrivals = steps.map((published) => arrives(published, { orderingKey: 'ok' }));
  assert.equal(judge(steps, arrivals).held, true);
  assert.deepEqual(new Set(kinds(judge(steps, arrivals.toReversed()))), new Set(['out of order']));
});

test('a message that never arrives is lost', () => {
  const one = call('dedup-in', 'a', { dedupId: 'a' });
  const two = call('delay-in', 'b');
  const report = judge([one, two], []);
  assert.deepEqual(kinds(report), ['lost', 'lost']);
  assert.equal(report.total.lost, 2);
});

test('a message that only ever met the gate is lost', () => {
  const one = call('dedup-in', 'a', { dedupId: 'a' });
  assert.deepEqual(kinds(judge([one], [arrives(one, { effect: false })])), ['lost']);
});

test('a lost number is named as what the ones behind it wait for', () => {
  const steps = [step(1), step(2), step(3)];
  const report = judge(steps, [arrives(steps[0]!)]);
  assert.equal(report.total.lost, 2);
  assert.match(report.violations[1]!.text, /number 3\): not delivered, the key waits for number 2/);
});

test('a payload that changed on the way is lost, with a line that says so', () => {
  const binary = call('dedup-in', '', { dedupId: 'b' }, { data: Buffer.from('00fffe80c328', 'hex') });
  const mangled = Buffer.from(binary.event.data.toString('utf8'));
  const report = judge([binary], [arrives(binary, { data: mangled })]);
  assert.deepEqual(kinds(report), ['corrupted', 'lost']);
  assert.match(report.violations[0]!.text, /other data arrived than was published \(14 bytes, published 6\)/);
});

test('attributes that changed, disappeared or appeared on the way are lost, with a line that says so', () => {
  const one = call('dedup-in', 'a', { dedupId: 'a', tenant: 'x' });
  const { attributes } = arrives(one);
  const { tenant: _, ...without } = attributes;
  for (const changed of [{ ...attributes, tenant: 'y' }, without, { ...attributes, more: 'z' }]) {
    assert.deepEqual(kinds(judge([one], [arrives(one, { attributes: changed })])), ['corrupted', 'lost']);
  }
});

test('a message that no event of the file published is a violation', () => {
  const one = call('dedup-in', 'a', { dedupId: 'a' });
  const unexpected = arrives(call('dedup-in', 'a', { dedupId: 'other' }));
  assert.deepEqual(kinds(judge([one], [arrives(one), unexpected])), ['unexpected']);
});

test('a publish that failed is a violation', () => {
  const { event } = call('dedup-in', 'a');
  assert.deepEqual(kinds(judge([{ event, error: 'no such topic' }], [])), ['not published']);
});

test('a dead-lettered message is shown with its reason and is not lost', () => {
  const bad = call('delay-in', 'a', { delay: 'soon' });
  const same = call('delay-in', 'a', { delay: '1' });
  const deadLetter = {
    messageId: 'd1',
    data: bad.event.data,
    attributes: {
      delay: 'soon',
      deadLetterReason: 'INVALID_ATTRIBUTE',
      deadLetterError: 'attribute delay …',
    },
  };
  const report = judge([same, bad], [arrives(same)], [deadLetter]);
  assert.equal(report.held, true);
  assert.equal(report.total.deadLettered, 1);
  assert.match(report.deadLetters[0]!, /^delay-in line \d+ .*: INVALID_ATTRIBUTE: attribute delay …$/);
});

test('the same dedupId with other bytes is another message: one is delivered, one dead-lettered', () => {
  const [left, right] = [call('dedup-in', 'a', { dedupId: 'c' }), call('dedup-in', 'b', { dedupId: 'c' })];
  const deadLetter = {
    messageId: 'd1',
    data: left.event.data,
    attributes: { dedupId: 'c', deadLetterReason: 'CONFLICT' },
  };
  const report = judge([left, right], [arrives(right)], [deadLetter]);
  assert.deepEqual(report.violations, []);
  assert.equal(report.total.distinct, 2);
});

test('the same number with the same bytes is one message, whatever it is published as', () => {
  const [one, again] = [step(1), step(1)];
  const report = judge([one, again], [arrives(again)]);
  assert.equal(report.held, true);
  assert.equal(report.total.duplicatesPublished, 1);
});

test('reports for people and for scripts say the same', () => {
  const steps = [step(1), step(2)];
  const report = judge(steps, steps.map((one) => arrives(one)).toReversed());
  const facts = { seconds: 12.34, killedAfter: 1, backAfterMs: 1_500 };
  assert.equal(
    renderJson(report, facts),
    '{"published":2,"delivered":2,"duplicatesPublished":0,"duplicatesDelivered":0,"early":0,"maxLatenessMs":0,"outOfOrder":2,"lost":0,"seconds":12.3}',
  );
  const text = renderReport(report, facts);
  assert.match(text, /^in order +2 +2 +0 +│ +2 +0 +- +- +2 +0 +0$/m);
  assert.match(text, /killed \(SIGKILL\) after 1 messages and served again 1\.5 s later/);
  assert.match(text, /^BROKEN: 2 violations .*2 out of order/m);
  assert.match(
    renderReport(
      judge(
        steps,
        steps.map((one) => arrives(one)),
      ),
      facts,
    ),
    /^HELD: .*none lost/m,
  );
});
