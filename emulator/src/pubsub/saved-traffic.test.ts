/**
 * Random traffic, saved and loaded at random moments, against a model of what each subscription still owes. The server
 * that is loaded is a fresh one or the same; what was delivered and not settled is in the hands of subscribers whose ack
 * IDs are then stale.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ManualClock, manualClock } from '../manual-clock.ts';
import { pull } from './pull.ts';
import { createRegistry, type Registry } from './registry.ts';
import { preparePubsub, savePubsub } from './saved.ts';
import { seek } from './seek.ts';
import { newSubscription } from './subscription-config.ts';
import { timestamp, type Subscription } from './wire.ts';

const START_MS = Date.UTC(2030, 0, 1);
const PROJECT = 'projects/test-project';
const [ORDERS, DEAD] = [`${PROJECT}/topics/orders`, `${PROJECT}/topics/dead`];
const subscriptionName = (id: string): string => `${PROJECT}/subscriptions/${id}`;
const SNAPSHOT = `${PROJECT}/snapshots/shot`;
const MAX_ATTEMPTS = 5;
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

const KINDS: Readonly<Record<string, Partial<Subscription>>> = {
  plain: {},
  ordered: { enableMessageOrdering: true },
  'ordered-backoff': {
    enableMessageOrdering: true,
    retryPolicy: { minimumBackoff: seconds(5), maximumBackoff: seconds(60) },
  },
  'exactly-once': { enableExactlyOnceDelivery: true, ackDeadlineSeconds: 30 },
  filtered: { filter: 'attributes.colour = "blue"', enableMessageOrdering: true },
  retaining: { retainAckedMessages: true, enableMessageOrdering: true },
  attempts: { deadLetterPolicy: { deadLetterTopic: DEAD, maxDeliveryAttempts: MAX_ATTEMPTS } },
  'ordered-attempts': {
    enableMessageOrdering: true,
    deadLetterPolicy: { deadLetterTopic: DEAD, maxDeliveryAttempts: MAX_ATTEMPTS },
  },
  detached: {},
};
const IDS = Object.keys(KINDS);

function config(id: string, topic: string, own: Partial<Subscription>): Subscription {
  const defaults = { pushConfig: null, ackDeadlineSeconds: 10, messageRetentionDuration: null, labels: {} };
  const none = { expirationPolicy: null, deadLetterPolicy: null, retryPolicy: null, filter: '' };
  const flags = {
    enableMessageOrdering: false,
    retainAckedMessages: false,
    enableExactlyOnceDelivery: false,
  };
  const name = subscriptionName(id);
  return newSubscription({ ...defaults, ...none, ...flags, detached: false, ...own, name, topic }, false);
}

type Message = Readonly<{ text: string; key: string; colour: string; atMs: number; serial: number }>;
const NACK_MS = 50;

type Lease = { message: Message; ackId: string; endsMs: number };
/** What a subscription owes, in the order of publishing, and what subscribers hold of it. */
type Owed = {
  waiting: Map<string, Message>;
  done: Message[];
  leases: Lease[];
  failures: Map<string, number>;
};

function world() {
  let clock: ManualClock = manualClock(START_MS);
  let registry: Registry = createRegistry({ clock });
  const owed = new Map<string, Owed>();
  const stale: string[] = [];
  let lastId = 0n;
  let serial = 0;
  let snapshot: Message[] | undefined;
  let isDetached = false;
  let topicIsThere = true;

  const fresh = (): Owed => ({ waiting: new Map(), done: [], leases: [], failures: new Map() });
  for (const name of [ORDERS, DEAD]) {
    registry.createTopic({ name, labels: {}, messageRetentionDuration: null });
  }
  for (const [id, own] of [...Object.entries(KINDS), ['dead-lettered', {}] as const]) {
    registry.createSubscription(config(id, id === 'dead-lettered' ? DEAD : ORDERS, own));
    owed.set(id, fresh());
  }
  const of = (id: string): Owed => owed.get(id) ?? assert.fail(id);
  const isOrdered = (id: string): boolean => KINDS[id]?.enableMessageOrdering === true;
  const matches = (id: string, { colour }: Message): boolean => id !== 'filtered' || colour === 'blue';

  /** A nack or an expired deadline. */
  function failed(id: string, lease: Lease): void {
    const state = of(id);
    const { message } = lease;
    state.leases = state.leases.filter((each) => each !== lease);
    const count = (state.failures.get(message.text) ?? 0) + 1;
    state.failures.set(message.text, count);
    if (KINDS[id]?.deadLetterPolicy && count >= MAX_ATTEMPTS) {
      state.waiting.delete(message.text);
      const text = `${message.text} of ${id}`;
      of('dead-lettered').waiting.set(text, { ...message, text, serial: serial++ });
      return;
    }
    // What followed it in its run is taken back.
    if (isOrdered(id) && message.key !== '') {
      const back = state.leases.filter(
        (each) => each.message.key === message.key && each.message.serial > message.serial,
      );
      state.leases = state.leases.filter((each) => !back.includes(each));
      stale.push(...back.map(({ ackId }) => ackId));
    }
  }

  async function take(id: string, maxMessages: number): Promise<readonly Lease[]> {
    const request = { subscription: subscriptionName(id), returnImmediately: true, maxMessages };
    const { receivedMessages } = await pull(registry, clock, {
      request,
      cancelled: () => false,
      onCancelled() {},
    });
    const state = of(id);
    const expected = new Map<string, Message[]>();
    const leases = receivedMessages.map(({ ackId, deliveryAttempt, message }) => {
      const source = message.attributes['CloudPubSubDeadLetterSourceSubscription'];
      const text = message.data.toString() + (source === undefined ? '' : ` of ${source}`);
      const found = state.waiting.get(text);
      if (found === undefined) assert.fail(`${id} got ${text}, which is acknowledged, elsewhere or filtered`);
      assert.ok(
        !state.leases.some((each) => each.message === found),
        `${id} got ${text}, which is outstanding`,
      );
      const counted = KINDS[id]?.deadLetterPolicy ? (state.failures.get(text) ?? 0) + 1 : 0;
      assert.equal(deliveryAttempt, counted, `the attempt of ${text} at ${id}`);
      if (isOrdered(id) && found.key !== '') {
        const line =
          expected.get(found.key) ?? [...state.waiting.values()].filter(({ key }) => key === found.key);
        expected.set(found.key, line);
        assert.ok(!state.leases.some((each) => each.message.key === found.key), `${text} overtakes at ${id}`);
        assert.equal(line.shift()?.text, text, `the order of key ${found.key} at ${id}`);
      }
      const endsMs = clock.now() + (KINDS[id]?.ackDeadlineSeconds ?? 10) * 1000;
      return { message: found, ackId, endsMs };
    });
    state.leases.push(...leases);
    return leases;
  }

  function ack(id: string, leases: readonly Lease[]): void {
    const state = of(id);
    const ids = leases.map(({ ackId }) => ackId);
    assert.deepEqual(registry.subscription(subscriptionName(id)).delivery.acknowledge(ids), []);
    state.leases = state.leases.filter((each) => !leases.includes(each));
    for (const { message } of leases) {
      state.waiting.delete(message.text);
      state.done.push(message);
    }
  }

  function passed(milliseconds: number): void {
    clock.advance(milliseconds);
    for (const [id, state] of owed) {
      const due = state.leases.filter(({ endsMs }) => endsMs <= clock.now());
      for (const lease of due.toSorted((a, b) => a.endsMs - b.endsMs)) {
        // An earlier one of its key may have taken it back.
        if (state.leases.includes(lease)) failed(id, lease);
      }
    }
  }

  /** Everything that was outstanding waits again, and its ack IDs are stale. */
  function takenBack(state: Owed): void {
    stale.push(...state.leases.map(({ ackId }) => ackId));
    state.leases = [];
  }

  const inOrder = (messages: Iterable<Message>): Map<string, Message> =>
    new Map([...messages].toSorted((a, b) => a.serial - b.serial).map((each) => [each.text, each]));

  return {
    publish(count: number, key: string, colour: string) {
      if (!topicIsThere) return;
      const messages = Array.from({ length: count }, () => {
        const n = serial++;
        return { text: `m${n}`, key, colour, atMs: clock.now(), serial: n };
      });
      const { messageIds: ids, deliver } = registry.publish(
        ORDERS,
        messages.map(({ text }) => ({
          data: Buffer.from(text),
          attributes: { colour },
          messageId: '',
          publishTime: null,
          orderingKey: key,
        })),
      );
      deliver();
      for (const id of ids) {
        assert.ok(BigInt(id) > lastId, `message ID ${id} after ${lastId}`);
        lastId = BigInt(id);
      }
      snapshot?.push(...messages);
      for (const id of IDS) {
        if (id === 'detached' && isDetached) continue;
        for (const each of messages) if (matches(id, each)) of(id).waiting.set(each.text, each);
      }
    },
    async pull(id: string, max: number) {
      if (id !== 'detached' || !isDetached) await take(id, max);
    },
    settle(id: string, which: number, how: 'ack' | 'nack') {
      const state = of(id);
      const lease = state.leases[which % Math.max(state.leases.length, 1)];
      if (lease === undefined) return;
      if (how === 'ack') return ack(id, [lease]);
      const { delivery } = registry.subscription(subscriptionName(id));
      assert.deepEqual(delivery.modifyAckDeadlines(new Map([[lease.ackId, 0]])), []);
      // A nack takes effect a little later, and by then other leases may have ended.
      lease.endsMs = clock.now() + NACK_MS;
      passed(NACK_MS);
    },
    ackStale(which: number) {
      const ackId = stale[which % Math.max(stale.length, 1)];
      if (ackId === undefined) return;
      for (const { delivery } of registry.states()) assert.deepEqual(delivery.acknowledge([ackId]), [ackId]);
    },
    pass: passed,
    seekTime(agoMs: number) {
      const fromMs = clock.now() - agoMs;
      seek(registry, { subscription: subscriptionName('retaining'), time: timestamp(fromMs) });
      const state = of('retaining');
      takenBack(state);
      const all = [...state.waiting.values(), ...state.done];
      state.waiting = inOrder(all.filter(({ atMs }) => atMs >= fromMs));
      state.done = all.filter(({ atMs }) => atMs < fromMs);
    },
    snapshot() {
      if (snapshot !== undefined || !topicIsThere) return;
      const { delivery } = registry.subscription(subscriptionName('retaining'));
      registry.snapshots.create(SNAPSHOT, ORDERS, {}, delivery.unacked());
      snapshot = [...of('retaining').waiting.values()];
    },
    seekSnapshot(id: string) {
      if (snapshot === undefined || !topicIsThere || (id === 'detached' && isDetached)) return;
      seek(registry, { subscription: subscriptionName(id), snapshot: SNAPSHOT });
      const state = of(id);
      takenBack(state);
      state.failures.clear();
      const all = [...state.waiting.values(), ...state.done];
      state.waiting = inOrder(snapshot.filter((each) => matches(id, each)));
      state.done = all.filter(({ text }) => !state.waiting.has(text));
    },
    detach() {
      registry.detachSubscription(subscriptionName('detached'));
      isDetached = true;
      takenBack(of('detached'));
      of('detached').waiting.clear();
    },
    deleteTopic() {
      if (topicIsThere) registry.deleteTopic(ORDERS);
      topicIsThere = false;
    },
    reload(laterMs: number, into: 'fresh' | 'same') {
      const saved = JSON.parse(JSON.stringify(savePubsub(registry))) as { nextMessageId: string };
      if (into === 'fresh') {
        registry.clear(new Error('over'));
        clock = manualClock(clock.now() + laterMs);
        registry = createRegistry({ clock });
      }
      preparePubsub(registry, saved)();
      for (const state of owed.values()) takenBack(state);
      assert.deepEqual({ ...savePubsub(registry), nextMessageId: '' }, { ...saved, nextMessageId: '' });
    },
    /** Takes and acknowledges until nothing comes any more: everything that is owed must have come. */
    async drain() {
      for (let round = 0, idle = 0; idle < 3; round += 1) {
        assert.ok(round < 500, 'it comes to an end');
        this.pass(60_000);
        let taken = 0;
        for (const id of owed.keys()) {
          if (id === 'detached' && isDetached) continue;
          const leases = await take(id, 100);
          taken += leases.length;
          ack(id, leases);
        }
        idle = taken === 0 ? idle + 1 : 0;
      }
      for (const [id, { waiting }] of owed) assert.deepEqual([...waiting.keys()], [], `never reached ${id}`);
      const { delivery } = registry.subscription(subscriptionName('detached'));
      assert.equal(delivery.backlog(), 0, 'nothing waits where no client can pull');
      registry.clear(new Error('over'));
      assert.equal(clock.timers(), 0);
    },
  };
}

type World = ReturnType<typeof world>;
const id = fc.constantFrom(...IDS, 'dead-lettered');
const step: fc.Arbitrary<(w: World) => void | Promise<void>> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .record({
        n: fc.integer({ min: 1, max: 4 }),
        key: fc.constantFrom('', 'a', 'b'),
        colour: fc.constantFrom('blue', 'red'),
      })
      .map(
        ({ n, key, colour }) =>
          (w: World) =>
            w.publish(n, key, colour),
      ),
  },
  {
    weight: 8,
    arbitrary: fc
      .record({ id, n: fc.integer({ min: 1, max: 5 }) })
      .map((s) => (w: World) => w.pull(s.id, s.n)),
  },
  {
    weight: 8,
    arbitrary: fc
      .record({ id, n: fc.nat(9), how: fc.constantFrom('ack' as const, 'nack' as const) })
      .map((s) => (w: World) => w.settle(s.id, s.n, s.how)),
  },
  { weight: 2, arbitrary: fc.nat(20).map((n) => (w: World) => w.ackStale(n)) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(1, 4_000, 9_999, 10_000, 31_000, 120_000)
      .map((ms) => (w: World) => w.pass(ms)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 5_000, 20_000, 3_600_000).map((ms) => (w: World) => w.seekTime(ms)),
  },
  { weight: 1, arbitrary: fc.constant((w: World) => w.snapshot()) },
  { weight: 1, arbitrary: fc.constantFrom(...IDS).map((i) => (w: World) => w.seekSnapshot(i)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      (w: World) => w.detach(),
      (w: World) => w.deleteTopic(),
    ),
  },
  {
    weight: 4,
    arbitrary: fc
      .record({ ms: fc.constantFrom(0, 1, 60_000), into: fc.constantFrom('fresh' as const, 'same' as const) })
      .map((s) => (w: World) => w.reload(s.ms, s.into)),
  },
);

test('property: whenever it is saved and loaded, each subscription gets what it is owed, in order, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const running = world();
      for (const each of steps) await each(running);
      await running.drain();
    }),
    { numRuns: 300 },
  );
});
