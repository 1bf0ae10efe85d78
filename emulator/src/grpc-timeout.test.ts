import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from './clock.ts';
import { startFirestore } from './firestore/index.ts';
import { boundedTimeout } from './grpc-timeout.ts';

test('a timeout that a timer can hold is left as it is, a longer one becomes the longest', () => {
  for (const value of ['0n', '1m', '60100m', '30M', '2147483S', '596H', '99999999u', 'x', '', '123456789S']) {
    assert.equal(boundedTimeout(value), value);
  }
  for (const value of ['2147484S', '27000H', '99999999H', '597H', '35792M']) {
    assert.equal(boundedTimeout(value), '2147483S');
  }
});

// Cut to 32 bits, the first would be negative and the second 704 ms.
for (const timeout of ['27000H', '4294968S']) {
  test(`a call with a deadline of ${timeout} may send its request late`, async (t) => {
    const server = await startFirestore({ clock: systemClock() });
    const session = connect(`http://${server.address}`);
    t.after(async () => {
      session.destroy();
      await server.close();
    });
    const call = session.request({
      ':method': 'POST',
      ':path': '/google.firestore.v1.Firestore/BeginTransaction',
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': timeout,
    });
    let status: unknown;
    // An answer without a message has its status in its headers.
    for (const event of ['response', 'trailers'] as const) {
      call.on(event, (headers: Record<string, unknown>) => (status ??= headers['grpc-status']));
    }
    const closed = once(call, 'close');
    call.resume();
    await wait(900);
    // One message, not compressed: field 1 is the database.
    const database = Buffer.from('projects/p/databases/d');
    const message = Buffer.concat([Buffer.from([0x0a, database.length]), database]);
    call.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
    await closed;
    assert.equal(status, '0');
  });
}
