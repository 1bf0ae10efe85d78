/** Unwrapped pushes over real HTTP: from the local stack's Pub/Sub to `readPush`. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { PubSub } from '@google-cloud/pubsub';
import fc from 'fast-check';
import { startPubsub, systemClock, until } from 'pubsub-guarantees-emulator';
import type { Message } from '../../../shared/src/message.ts';
import { readPush } from '../../../shared/src/receive/push.ts';

type Fixture = Readonly<{
  /** Publishes the message, and gives back what the receiver reads, with the server's lines about it. */
  pushed(
    attributes: Readonly<Record<string, string>>,
    orderingKey?: string,
  ): Promise<Readonly<{ message: Message; lines: readonly string[] }>>;
}>;

async function fixture(t: TestContext): Promise<Fixture> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const lines: string[] = [];
  const received: Message[] = [];
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const { method = '', headers } = request;
      received.push(readPush({ method, headers, rawBody: Buffer.concat(chunks) }, Date.now()));
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const running = await startPubsub({ clock: systemClock(), log: (line) => lines.push(line) });
  const pubsub = new PubSub({ apiEndpoint: running.address, projectId: 'demo-project' });
  t.after(async () => {
    await pubsub.close();
    await running.close();
    server.closeAllConnections();
    server.close();
  });
  const [topic] = await pubsub.createTopic('orders');
  await topic.createSubscription('orders-sub', {
    pushConfig: {
      pushEndpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      noWrapper: { writeMetadata: true },
    },
  });
  const ordered = pubsub.topic('orders', { messageOrdering: true });
  return {
    async pushed(attributes, orderingKey) {
      const [count, said] = [received.length, lines.length];
      const data = Buffer.from('x');
      if (orderingKey === undefined) await topic.publishMessage({ data, attributes });
      else await ordered.publishMessage({ data, attributes, orderingKey });
      const message = await until(() => received[count], 'a push arrives');
      return { message, lines: lines.slice(said) };
    },
  };
}

test('reads what was published, in any script, from the headers of an unwrapped push', async (t) => {
  const { pushed } = await fixture(t);
  for (const dedupId of [
    'order-1',
    'заказ-1',
    '注文-1',
    '🚀',
    'é',
    'Ã©',
    'naïve café',
    '\u{feff}a',
    'a\tb',
    '',
  ]) {
    const { message, lines } = await pushed({ dedupId }, 'ключ-🚀');
    assert.deepEqual(message.attributes, { dedupId });
    assert.equal(message.orderingKey, 'ключ-🚀');
    assert.deepEqual(lines, []);
  }
});

test('logs what no header can carry, and leaves it out', async (t) => {
  const { pushed } = await fixture(t);
  const { message, lines } = await pushed({
    good: 'a',
    'not a name': 'a',
    имя: 'a',
    line: 'a\r\ninjected: b',
    control: 'a\u0001',
    deleted: 'a\u007f',
    leading: ' a',
    trailing: 'a\t',
    tenant: 'first',
    Tenant: 'second',
    host: 'evil.example',
    'content-length': '1',
    'x-goog-pubsub-message-id': '1',
  });
  assert.deepEqual(message.attributes, { good: 'a', tenant: 'first' });
  assert.notEqual(message.id, '1');
  const named = lines.map(
    (line) => /the attribute ("[^"]*") is not among its headers: /.exec(line)?.[1] ?? line,
  );
  assert.deepEqual(
    named.toSorted(),
    [
      '"not a name"',
      '"имя"',
      '"line"',
      '"control"',
      '"deleted"',
      '"leading"',
      '"trailing"',
      '"Tenant"',
      '"host"',
      '"content-length"',
      '"x-goog-pubsub-message-id"',
    ].toSorted(),
  );
});

test('an ordering key that no header can carry is logged too', async (t) => {
  const { pushed } = await fixture(t);
  const { message, lines } = await pushed({}, 'a\nb');
  assert.equal(message.orderingKey, undefined);
  assert.match(lines.join(), /the ordering key is not among its headers: /);
});

test('each attribute arrives unchanged, or is logged as left out', async (t) => {
  const { pushed } = await fixture(t);
  const text = fc.string({ unit: 'binary', maxLength: 12 }).filter((value) => value.isWellFormed());
  await fc.assert(
    fc.asyncProperty(text, async (value) => {
      const { message, lines } = await pushed({ dedupId: value });
      if (lines.length === 0) assert.equal(message.attributes['dedupId'], value);
      else assert.deepEqual(message.attributes, {});
    }),
    { numRuns: 200 },
  );
});
