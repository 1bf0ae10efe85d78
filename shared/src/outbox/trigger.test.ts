import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outboxTrigger } from './trigger.ts';

const HEADERS = {
  'ce-type': 'google.cloud.firestore.document.v1.created',
  'content-type': 'application/protobuf',
};
const field = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([10, bytes.length]), bytes]);
const eventOf = (name: string) => ({ headers: HEADERS, rawBody: field(field(Buffer.from(name))) });

function setUp() {
  const asked: string[] = [];
  const relay = {
    tailRow: async (id: string) => {
      asked.push(id);
      return 'sent' as const;
    },
  };
  return { asked, relay };
}

test('an event of a row makes the relay look at it', async () => {
  const { asked, relay } = setUp();
  const row = 'projects/p/databases/(default)/documents/pubsub-guarantees-outbox-rows/r1';
  assert.equal(await outboxTrigger(relay)(eventOf(row)), 'sent');
  const other = outboxTrigger(relay, { rows: 'shop-outbox-rows', database: 'shop' });
  assert.equal(await other(eventOf('projects/p/databases/shop/documents/shop-outbox-rows/r2')), 'sent');
  assert.deepEqual(asked, ['r1', 'r2']);
});

test('an event of another collection or database is refused, and nothing is asked of the store', async () => {
  const { asked, relay } = setUp();
  const created = outboxTrigger(relay, { rows: 'rows' });
  for (const place of [
    '(default)/documents/orders',
    'second/documents/rows',
    '(default)/documents/a/b/rows',
  ]) {
    await assert.rejects(created(eventOf(`projects/p/databases/${place}/r1`)), {
      name: 'PermanentError',
      code: 'EVENT_REFUSED',
      message: /^the document was created in ".*"; accepted: \(default\)\/rows$/,
    });
  }
  await assert.rejects(created({ headers: HEADERS, rawBody: Buffer.from('x') }), { code: 'EVENT_REFUSED' });
  assert.deepEqual(asked, []);
});
