import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutgoingMessage } from '../message.ts';
import { untilStopped } from './until-stopped.ts';

const message: OutgoingMessage = { topic: 'projects/p/topics/t', data: new Uint8Array(), attributes: {} };

test('a confirmed message is confirmed, and a refused one refused', async () => {
  const { signal } = new AbortController();
  assert.equal(await untilStopped({ publish: async () => '7' }, signal).publish(message), '7');
  const refuses = untilStopped({ publish: async () => Promise.reject(new Error('no')) }, signal);
  await assert.rejects(refuses.publish(message), /no/);
});

test('a publish that is not confirmed when the process ends is rejected, and none begins after that', async () => {
  const end = new AbortController();
  let calls = 0;
  const publisher = untilStopped(
    {
      publish: () => {
        calls += 1;
        return new Promise(() => undefined);
      },
    },
    end.signal,
  );
  const waits = publisher.publish(message);
  end.abort();
  await assert.rejects(waits, { code: 'PUBLISH_STOPPED' });
  await assert.rejects(publisher.publish(message), { code: 'PUBLISH_STOPPED' });
  assert.equal(calls, 1);
});
