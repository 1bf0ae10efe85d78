/**
 * Pushes over real sockets, saved and loaded at random moments: with requests in flight, answered and lost. Every message
 * comes, those of a key in order, and none again that was acknowledged when the state was saved.
 */
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../manual-clock.ts';
import { createRegistry, type Registry } from './registry.ts';
import { preparePubsub, savePubsub } from './saved.ts';
import { newSubscription } from './subscription-config.ts';
import { until } from './test-server.ts';

const TOPIC = 'projects/test-project/topics/orders';
const NAME = 'projects/test-project/subscriptions/pushed';
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

type Step =
  | Readonly<{ kind: 'publish'; key: 'a' | 'b' | ''; count: number }>
  | Readonly<{ kind: 'turns'; count: number }>
  | Readonly<{ kind: 'pass'; ms: number }>
  | Readonly<{ kind: 'reload'; laterMs: number }>;

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('publish' as const),
    key: fc.constantFrom('a' as const, 'b' as const, '' as const),
    count: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ kind: fc.constant('turns' as const), count: fc.integer({ min: 0, max: 12 }) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(500, 1_000, 10_000) }),
  fc.record({ kind: fc.constant('reload' as const), laterMs: fc.constantFrom(0, 5_000) }),
);
/** What the endpoint does with its n-th request. */
const answers = fc.array(fc.constantFrom('ok', 'ok', 'fail', 'hang'), { minLength: 1, maxLength: 8 });

test('property: pushes that a save cuts off come again, in order, and what was acknowledged does not', async (t) => {
  let onPush = (_text: string, _key: string, response: ServerResponse): void => void response.end();
  const target = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { message } = JSON.parse(Buffer.concat(chunks).toString()) as {
        message: { data: string; orderingKey?: string };
      };
      onPush(Buffer.from(message.data, 'base64').toString(), message.orderingKey ?? '', response);
    });
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    target.close();
    target.closeAllConnections();
  });
  const pushEndpoint = `http://127.0.0.1:${(target.address() as AddressInfo).port}/push`;

  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), answers, async (steps, plan) => {
      let clock = manualClock();
      let registry: Registry = createRegistry({ clock });
      const published: { text: string; key: string }[] = [];
      const answered = new Set<string>();
      const over = new Set<string>();
      const wrong: string[] = [];
      let requests = 0;
      let draining = false;
      onPush = (text, key, response) => {
        if (over.has(text)) wrong.push(`${text} was delivered again`);
        const before = key === '' ? [] : published.filter((each) => each.key === key);
        const missing = before.slice(
          0,
          before.findIndex((each) => each.text === text),
        );
        if (missing.some((each) => !answered.has(each.text)))
          wrong.push(`${text} was delivered out of order`);
        const answer = draining ? 'ok' : plan[requests++ % plan.length];
        if (answer === 'ok') answered.add(text);
        if (answer !== 'hang') response.writeHead(answer === 'ok' ? 204 : 500).end();
      };
      registry.createTopic({ name: TOPIC, labels: {}, messageRetentionDuration: null });
      const backoff = { seconds: '1', nanos: 0 };
      registry.createSubscription(
        newSubscription(
          {
            name: NAME,
            topic: TOPIC,
            pushConfig: { pushEndpoint, attributes: {} },
            ackDeadlineSeconds: 10,
            messageRetentionDuration: null,
            labels: {},
            enableMessageOrdering: true,
            expirationPolicy: null,
            deadLetterPolicy: null,
            retryPolicy: { minimumBackoff: backoff, maximumBackoff: backoff },
            filter: '',
            retainAckedMessages: false,
            detached: false,
            enableExactlyOnceDelivery: false,
          },
          false,
        ),
      );
      const owed = (): string[] =>
        registry
          .subscription(NAME)
          .delivery.unacked()
          .map(({ message }) => message.data.toString());

      for (const each of steps) {
        if (each.kind === 'publish') {
          const texts = Array.from(
            { length: each.count },
            (_, index) => `${each.key}${published.length + index}`,
          );
          published.push(...texts.map((text) => ({ text, key: each.key })));
          const rest = { attributes: {}, messageId: '', publishTime: null, orderingKey: each.key };
          registry
            .publish(
              TOPIC,
              texts.map((text) => ({ data: Buffer.from(text), ...rest })),
            )
            .deliver();
        } else if (each.kind === 'turns') await turns(each.count);
        else if (each.kind === 'pass') clock.advance(each.ms);
        else {
          const saved = JSON.parse(JSON.stringify(savePubsub(registry))) as object;
          const left = new Set(owed());
          registry.clear(new Error('over'));
          // A request that was on its way may have arrived: only what is behind the server's back may still come in.
          await turns(20);
          for (const { text } of published) if (!left.has(text)) over.add(text);
          clock = manualClock(clock.now() + each.laterMs);
          registry = createRegistry({ clock });
          preparePubsub(registry, saved)();
        }
      }
      draining = true;
      await until(async () => {
        // Less than the ack deadline, with turns in between in which what is sent is answered.
        clock.advance(1_500);
        await turns(20);
        return owed().length === 0;
      });
      const lost = published.filter(({ text }) => !answered.has(text));
      registry.clear(new Error('over'));
      assert.deepEqual([wrong, lost, clock.timers()], [[], [], 0]);
    }),
    { numRuns: 40 },
  );
});
