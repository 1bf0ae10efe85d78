/** What a web page that is open on the machine can do to the stack: nothing, at any of its ports. */
import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { seedFrom } from '../seed/seed.ts';
import { until } from '../until.ts';
import { startStack } from './stack.ts';
import { startToolkit, type Toolkit } from './toolkit.ts';

let toolkit: Toolkit;
before(async () => {
  toolkit = await startToolkit();
});
after(() => toolkit?.close());

type Answer = Readonly<{ status: number; headers: IncomingHttpHeaders; body: string }>;

/** With exactly these headers, which `fetch` would not set. */
function send(url: string, method: string, headers: Record<string, string>, body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    sent.on('error', reject).end(body);
  });
}

/** A request of each kind to each HTTP server of the stack: what a page would want to send. */
function requests(): readonly (readonly [url: string, method: string, body: string])[] {
  const { control, functions, republisher, project } = toolkit.addresses;
  const queue = `${control}/v2/projects/${project}/locations/us-central1/queues/delay-queue/tasks`;
  const push = JSON.stringify({ message: { data: 'AA==', messageId: '1' }, subscription: 'x' });
  return [
    [`${control}/state`, 'GET', ''],
    [`${control}/save`, 'GET', ''],
    [`${control}/healthz`, 'GET', ''],
    [`${control}/oidc/jwks`, 'GET', ''],
    [`${control}/log`, 'GET', ''],
    [`${control}/nothing`, 'GET', ''],
    [`${control}/reset`, 'POST', ''],
    [`${control}/load`, 'POST', '{}'],
    [`${control}/clock`, 'GET', ''],
    [`${control}/clock/advance`, 'POST', '{"by":"1s"}'],
    [`${control}/faults`, 'POST', '{"rules":[]}'],
    [`${control}/v1/projects/${project}/topics/dedup-in:publish`, 'POST', '{"messages":[{"data":"AA=="}]}'],
    [`${control}/v1/projects/${project}/subscriptions/dedup-out-sub:pull`, 'POST', '{"maxMessages":1}'],
    [queue, 'GET', ''],
    [queue, 'POST', `{"task":{"httpRequest":{"url":"${control}/reset"}}}`],
    ...Object.values(functions).flatMap((url) => [
      [`${url}/`, 'POST', push] as const,
      [`${url}/sweep`, 'POST', ''] as const,
      [`${url}/wake`, 'POST', '{}'] as const,
    ]),
    [`${republisher}/`, 'GET', ''],
    [`${republisher}/republish`, 'POST', push],
  ];
}

const portOf = (url: string): string => new URL(url).port;

const FOREIGN: Readonly<Record<string, (port: string) => Record<string, string>>> = {
  'the origin of another site': () => ({ origin: 'https://evil.example' }),
  'the origin of another server on this machine': () => ({ origin: 'http://localhost:3000' }),
  'an opaque origin': () => ({ origin: 'null' }),
  'a name that was rebound': (port) => ({ host: `evil.example:${port}` }),
  'a name that begins like ours': (port) => ({ host: `localhost.evil.example:${port}` }),
  'an address of another machine': (port) => ({ host: `192.168.1.4:${port}` }),
  'a rebound name with its own origin': (port) => ({
    host: `evil.example:${port}`,
    origin: `http://evil.example:${port}`,
    'sec-fetch-site': 'same-origin',
  }),
  'a request of another site without an origin': () => ({ 'sec-fetch-site': 'cross-site' }),
  'a request of another port without an origin': () => ({ 'sec-fetch-site': 'same-site' }),
};

for (const [what, headersOf] of Object.entries(FOREIGN)) {
  test(`refuses ${what} at every port`, async () => {
    for (const [url, method, body] of requests()) {
      const headers = { 'content-type': 'text/plain', ...headersOf(portOf(url)) };
      const answer = await send(url, method, headers, body);
      assert.equal(answer.status, 403, `${method} ${url}: ${answer.status} ${answer.body}`);
      assert.match(answer.body, /^\{"error":"the header (Host|Origin|Sec-Fetch-Site) is .*accepted: /);
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
  });
}

test('answers no preflight of a page', async () => {
  for (const [url] of requests()) {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
    assert.equal((await send(url, 'OPTIONS', headers)).status, 403);
  }
});

test('answers programs, and what the user types, by every name of this machine', async () => {
  const port = portOf(toolkit.addresses.control);
  for (const host of [
    `127.0.0.1:${port}`,
    `localhost:${port}`,
    `LOCALHOST:${port}`,
    `[::1]:${port}`,
    '127.0.0.1',
  ]) {
    for (const headers of [{}, { 'sec-fetch-site': 'none' }, { origin: `http://${host}` }]) {
      const answer = await send(`${toolkit.addresses.control}/clock`, 'GET', { ...headers, host });
      assert.equal(answer.status, 200, `${host} ${JSON.stringify(headers)}`);
    }
  }
  for (const url of Object.values(toolkit.addresses.functions)) {
    assert.notEqual((await send(`${url}/`, 'GET', {})).status, 403);
  }
});

test('a request with a body that never ends is refused at once', async () => {
  const { port } = new URL(toolkit.addresses.control);
  const socket = connect(Number(port), '127.0.0.1');
  const answer = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
  socket.write('POST /load HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n\r\n{');
  assert.match(await answer, /^HTTP\/1\.1 403 /);
  socket.destroy();
});

test('the gRPC ports answer nothing to what a browser speaks', async () => {
  const { pubsub, firestore, tasks } = toolkit.addresses;
  for (const address of [pubsub, firestore, tasks]) {
    const [host = '', port] = address.split(':');
    const socket = connect(Number(port), host);
    let said = '';
    socket.setEncoding('latin1').on('data', (text: string) => (said += text));
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(`POST /google.pubsub.v1.Publisher/Publish HTTP/1.1\r\nHost: ${address}\r\n`);
    socket.write('Content-Type: application/grpc-web\r\nContent-Length: 0\r\n\r\n');
    await Promise.race([closed, wait(2_000)]);
    socket.destroy();
    assert.ok(!said.includes('HTTP/1.1 200'), said);
  }
});

test('sends tasks and pushes to other machines only where that is configured', async (t) => {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const other = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (other === undefined) return t.skip('this machine has no address but its loopback ones');
  for (const remoteTargets of [false, true]) {
    const arrived: string[] = [];
    const target = createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
      arrived.push(incoming.url ?? '');
      incoming.resume().once('end', () => response.writeHead(204).end());
    });
    // An address of this very machine that is none of its loopback ones.
    await new Promise<void>((resolve) => target.listen(0, other, resolve));
    const url = `http://${other}:${(target.address() as AddressInfo).port}`;
    const lines: string[] = [];
    const seed = seedFrom({
      topics: { orders: { subscriptions: { web: { pushConfig: { pushEndpoint: `${url}/push` } } } } },
      queues: { work: { retryConfig: { maxAttempts: 1 } } },
    });
    const stack = await startStack({ seed, remoteTargets, log: (line) => lines.push(line) });
    t.after(async () => {
      await stack.close();
      target.closeAllConnections();
      target.close();
    });
    const { control, project } = stack.addresses;
    const bodies = {
      [`/v1/projects/${project}/topics/orders:publish`]: { messages: [{ data: 'AA==' }] },
      [`/v2/projects/${project}/locations/us-central1/queues/work/tasks`]: {
        task: { httpRequest: { url: `${url}/task` } },
      },
    };
    for (const [path, body] of Object.entries(bodies)) {
      const answer = await fetch(control + path, { method: 'POST', body: JSON.stringify(body) });
      assert.equal(answer.status, 200);
    }
    const refused = (name: string): boolean =>
      lines.some((line) => line.startsWith(`[${name}]`) && line.includes('--remote-targets'));
    await until(
      () => new Set(arrived).size === 2 || (refused('pubsub') && refused('tasks')),
      () => `both arrive, or both are refused: ${arrived.join(', ')}\n${lines.join('\n')}`,
    );
    if (remoteTargets) {
      // A push that was not answered in time may have come again.
      assert.deepEqual([...new Set(arrived)].toSorted(), ['/push', '/task']);
      assert.equal(refused('pubsub') || refused('tasks'), false, lines.join('\n'));
    } else {
      assert.deepEqual(arrived, []);
    }
  }
});
