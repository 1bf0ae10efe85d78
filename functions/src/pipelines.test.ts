import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silent } from 'pubsub-guarantees';
import { memoryClaims, memoryStreams, memoryPayloads, memoryTasks } from 'pubsub-guarantees/testing';
import { virtualClock } from 'pubsub-guarantees/testing';
import { readConfig } from './config.ts';
import type { OutboxPorts } from './outbox-clients.ts';
import { pipeline } from './pipelines.ts';

const ENVIRONMENT = {
  GOOGLE_CLOUD_PROJECT: 'p',
  TARGET_TOPIC: 'out',
  DEAD_LETTER_TOPIC: 'dead-letters',
  SOURCE_TOPIC: 'source',
  DELAY_QUEUE: 'later',
  TASKS_LOCATION: 'us-central1',
};

function parts(target: string, outbox?: OutboxPorts) {
  const clock = virtualClock();
  return pipeline(readConfig(ENVIRONMENT, target), {
    clock,
    log: silent,
    publisher: { publish: async () => '1' },
    claims: memoryClaims({ clock }),
    tasks: memoryTasks({ clock }),
    streams: memoryStreams({ clock }),
    ledger: undefined,
    payloads: undefined,
    outbox,
    subscriptionWindows: async () => undefined,
    evictionPolicy: Promise.resolve(undefined),
  });
}

test('every function relays the outbox by its sweep where it is configured to, and cleans its payload store', () => {
  const outbox: OutboxPorts = {
    repair: { republish: async () => [] },
    sweep: () => Promise.reject(new Error('not called here')),
    created: () => Promise.reject(new Error('not called here')),
    payloads: memoryPayloads({ clock: virtualClock() }),
  };
  for (const target of ['dedup', 'delay', 'fifo', 'pipeline']) {
    const names = Object.keys(parts(target, outbox).sweeps);
    assert.ok(names.includes('outbox') && names.includes('payloads'), `${target}: ${names.join()}`);
    assert.equal(Object.keys(parts(target).sweeps).includes('outbox'), false);
  }
  assert.deepEqual(Object.keys(parts('dedup').sweeps), [], 'a function with nothing to sweep has no sweep');
});

test('what has streams can be woken, and nothing else', () => {
  const woken = ['dedup', 'delay', 'fifo', 'pipeline'].filter((target) => parts(target).wake !== undefined);
  assert.deepEqual(woken, ['fifo', 'pipeline']);
});
