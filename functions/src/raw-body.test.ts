import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders, Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { http } from '@google-cloud/functions-framework';
import { getTestServer } from '@google-cloud/functions-framework/testing';
import { bodyOf, headersOf, keepBodiesRaw, MAX_BODY_BYTES } from './raw-body.ts';

type Seen = Readonly<
  { headers: IncomingHttpHeaders; body: Buffer | 'no room' | undefined } | { error: unknown }
>;

const seen: Seen[] = [];
let server: Server;

before(async () => {
  keepBodiesRaw();
  http('raw', async (request, response) => {
    try {
      seen.push({ headers: headersOf(request), body: await bodyOf(request) });
    } catch (error) {
      seen.push({ error });
    }
    response.status(204).send('');
  });
  server = getTestServer('raw');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

after(() => {
  server.close();
  server.closeAllConnections();
});

/** Byte for byte what is written here: clients add headers of their own. */
async function send(
  headers: readonly string[],
  body: Uint8Array,
  length = body.length,
): Promise<{ status: string; seen: Seen | undefined }> {
  seen.length = 0;
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const lines = ['POST / HTTP/1.1', 'Host: f', 'Connection: close', `Content-Length: ${length}`, ...headers];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  socket.write(body);
  if (length > body.length) socket.end();
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
  await once(socket, 'close');
  return { status: answer.split(' ', 2)[1] ?? '', seen: seen[0] };
}

test('a body comes as the bytes that were sent, whatever its headers call it', async () => {
  const cases: [string, string[], Uint8Array][] = [
    ['no content type', [], Buffer.from('hello')],
    ['no content type that exists', ['Content-Type: garbage'], Buffer.from('hello')],
    ['JSON that is none', ['Content-Type: application/json'], Buffer.from('hello {')],
    ['JSON that is no object', ['Content-Type: application/json'], Buffer.from('123')],
    ['a CloudEvent that is none', ['Content-Type: application/cloudevents+json'], Buffer.from('{')],
    ['an unknown charset', ['Content-Type: text/plain; charset=foo'], Buffer.from('hello')],
    ['JSON in another charset', ['Content-Type: application/json; charset=utf-16'], Buffer.from('{}')],
    [
      'a form of many fields',
      ['Content-Type: application/x-www-form-urlencoded'],
      Buffer.from('a&'.repeat(2_000)),
    ],
    ['compressed by name only', ['Content-Encoding: gzip'], Buffer.from('hello')],
    ['compressed', ['Content-Encoding: gzip', 'Content-Type: text/plain'], gzipSync('hello')],
    ['binary', ['Content-Type: application/octet-stream'], Buffer.from('00fffe80c328', 'hex')],
    ['nothing', ['Content-Type: application/json'], Buffer.alloc(0)],
  ];
  for (const [name, headers, body] of cases) {
    const { status, seen: got } = await send(headers, body);
    assert.equal(status, '204', name);
    assert.ok(got !== undefined && 'body' in got, name);
    assert.deepEqual(got.body, Buffer.from(body), name);
  }
});

test('the headers are those that were sent', async () => {
  const { seen: got } = await send(
    ['Content-Type: application/json', 'Content-Encoding: gzip', 'tenant: a'],
    Buffer.from('x'),
  );
  assert.ok(got !== undefined && 'headers' in got);
  assert.equal(got.headers['content-type'], 'application/json');
  assert.equal(got.headers['content-encoding'], 'gzip');
  assert.equal(got.headers['tenant'], 'a');
  const { seen: bare } = await send([], Buffer.from('x'));
  assert.ok(bare !== undefined && 'headers' in bare);
  assert.equal(Object.hasOwn(bare.headers, 'content-type'), false);
});

test('a body that ends early is refused', async () => {
  const { seen: got } = await send(['x-goog-pubsub-message-id: 1'], Buffer.from('hel'), 5);
  assert.ok(got === undefined || 'error' in got);
});

test('more than any delivery has is not kept', async () => {
  const { status, seen: got } = await send([], Buffer.alloc(MAX_BODY_BYTES + 1));
  assert.equal(status, '204');
  assert.ok(got !== undefined && 'body' in got);
  assert.equal(got.body, undefined);
});
