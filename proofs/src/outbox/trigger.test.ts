/**
 * The outbox's trigger on the local stack: rows of a writer that died, with the trigger, without it, and with too much of
 * it. No relay runs, and none of the tests sweeps but where it says so.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';
import type { Firestore } from '@google-cloud/firestore';
import { type Stack, startStack, until } from 'pubsub-guarantees-emulator';
import { TransientError } from '../../../shared/src/errors.ts';
import { silent } from '../../../shared/src/log.ts';
import type { OutgoingMessage } from '../../../shared/src/message.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { outbox } from '../../../shared/src/outbox/outbox.ts';
import { type Relay, relay } from '../../../shared/src/outbox/relay.ts';
import { outboxTrigger } from '../../../shared/src/outbox/trigger.ts';
import { clientOf } from '../servers/firestore-servers.ts';
import type { DyingTask } from './dying-writer.ts';
import { message } from './world.ts';

const ROWS = 'rows';
const STREAMS = 'streams';

suite('a trigger on the outbox', () => {
  let stack: Stack<'firestore'>;
  let firestore: Firestore;
  let relayed: Relay;
  const outcomes: string[] = [];
  const published: string[] = [];
  let isDown = false;
  const publisher = {
    async publish({ data }: OutgoingMessage) {
      if (isDown) throw new TransientError('PUBSUB_UNAVAILABLE', 'down');
      return String(published.push(Buffer.from(data).toString()));
    },
  };
  const texts = (): string[] => published.splice(0);

  const endpoint = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    void bodyOf(request)
      .then((rawBody) => created({ headers: request.headers, rawBody }))
      .catch((error: unknown) => String(error))
      .then((outcome) => {
        outcomes.push(outcome);
        response.writeHead(outcome === 'sent' || outcome === 'left' ? 204 : 503).end();
      });
  });
  let created: ReturnType<typeof outboxTrigger>;

  before(async () => {
    await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/outbox`;
    stack = await startStack({ services: ['firestore'], triggers: [{ collection: ROWS, url }] });
    // An event that was not answered comes again when the test says so.
    stack.clock.freeze();
    firestore = clientOf(stack.addresses.firestore);
    const store = firestoreOutbox(firestore, { rows: ROWS, streams: STREAMS });
    relayed = relay(store, publisher, { log: silent });
    created = outboxTrigger(relayed, { rows: ROWS });
  });
  after(async () => {
    await firestore?.terminate();
    await stack?.close();
    endpoint.close();
    endpoint.closeAllConnections();
  });

  /** As a writer that holds the lease of its row, and never comes back to it. */
  const commitAndDie = async (text: string, sequenceKey?: string): Promise<void> => {
    const box = outbox(firestoreOutbox(firestore, { rows: ROWS, streams: STREAMS }), { relay: relayed });
    await firestore.runTransaction(async (transaction) =>
      (await box.reserve(transaction, sequenceKey === undefined ? {} : { sequenceKey })).add(message(text)),
    );
  };
  const answers = async (count: number): Promise<string[]> => {
    await until(() => outcomes.length >= count);
    return outcomes.splice(0).toSorted();
  };

  test('rows of a process that died after its commit are published, in their order, without a sweep', async () => {
    const task: DyingTask = { firestore: stack.addresses.firestore, rows: ROWS, streams: STREAMS };
    const writer = fork(new URL('./dying-writer.ts', import.meta.url), [JSON.stringify(task)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const [, signal] = await once(writer, 'exit');
    assert.equal(signal, 'SIGKILL');
    // Of each row one: three of a stream, one without order, and two of an inbox's delivery, which are one group.
    const found = await answers(6);
    assert.deepEqual(new Set(found), new Set(['left', 'sent']));
    const all = texts();
    assert.deepEqual(all.toSorted(), ['1', '2', '3', 'loose', 'reply 1', 'reply 2']);
    assert.deepEqual(
      all.filter((text) => /^\d$/.test(text)),
      ['1', '2', '3'],
    );
    assert.deepEqual(
      all.filter((text) => text.startsWith('reply')),
      ['reply 1', 'reply 2'],
    );
  });

  test('a row whose event is lost is published by the sweep, once its writer’s lease has ended', async () => {
    stack.faults.set({ rules: [{ service: 'firestore', method: 'trigger', action: { type: 'lose' } }] });
    await commitAndDie('a');
    await until(() => stack.faults.log().length === 1);
    stack.faults.clear();
    assert.deepEqual([texts(), outcomes.length], [[], 0]);
    await stack.clock.advance(31_000);
    const swept = await relayed.sweep({ signal: new AbortController().signal });
    assert.deepEqual([texts(), swept.done], [['a'], 1]);
  });

  test('an event that comes twice at once publishes its row once', async () => {
    stack.faults.set({ rules: [{ service: 'firestore', method: 'trigger', action: { type: 'duplicate' } }] });
    await commitAndDie('a');
    assert.deepEqual(await answers(2), ['left', 'sent']);
    await commitAndDie('b', 'k');
    const both = await answers(2);
    stack.faults.clear();
    assert.ok(both.includes('sent'), both.join());
    assert.deepEqual(texts(), ['a', 'b']);
  });

  test('an event whose answer was lost comes again, and finds nothing to do', async () => {
    const lost = { service: 'firestore', method: 'trigger', nth: 1, action: { type: 'lose-reply' } };
    stack.faults.set({ rules: [lost] });
    await commitAndDie('a');
    assert.deepEqual(await answers(1), ['sent']);
    await stack.clock.advance(10_000);
    assert.deepEqual(await answers(1), ['left']);
    stack.faults.clear();
    assert.deepEqual(texts(), ['a']);
  });

  test('an event that no topic takes is sent again, and its row is published then', async () => {
    isDown = true;
    await commitAndDie('a');
    assert.deepEqual(await answers(1), ['failed']);
    isDown = false;
    assert.deepEqual(texts(), []);
    await stack.clock.advance(10_000);
    assert.deepEqual(await answers(1), ['sent']);
    assert.deepEqual(texts(), ['a']);
  });
});

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
