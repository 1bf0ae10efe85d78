import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeUnavailable } from '../errors.ts';
import { silent } from '../log.ts';
import type { Message } from '../message.ts';
import type { Outcome } from '../outcome.ts';
import { deliver } from '../receive/deliver.ts';
import { virtualClock } from '../testing/index.ts';
import { enqueueing } from './enqueueing.ts';
import type { NewJob } from './job.ts';
import { jobs } from './jobs.ts';
import { memoryJobs } from './memory.ts';
import { memoryJobTable } from './memory-table.ts';

const message = (id: string, text: string, attributes = {}): Message => ({
  id,
  data: Buffer.from(text),
  attributes,
  publishTime: new Date(1_893_456_000_000),
});
const toJob = ({ data }: Message): NewJob => ({
  role: 'ingest',
  kind: 'scene',
  payload: JSON.parse(data.toString()),
});

function world() {
  const clock = virtualClock();
  const table = memoryJobTable();
  let isLost = false;
  const store = memoryJobs({
    clock,
    table,
    async network(request, send) {
      const value = await send();
      if (request === 'commit' && isLost) throw storeUnavailable('the reply was lost');
      return value;
    },
  });
  const handler = enqueueing(jobs(store, { clock }), toJob);
  const given = async (one: Message): Promise<Outcome> =>
    deliver(handler, one, { consumer: 'intake', source: 's', clock, log: silent, handlerTimeout: '10s' });
  const outcomeOf = async (one: Message): Promise<string> => {
    const outcome = await given(one);
    return outcome.kind === 'ack'
      ? outcome.reason
      : `${outcome.kind} ${String(Reflect.get(Object(outcome.error), 'code'))}`;
  };
  return { clock, table, outcomeOf, loses: (lost: boolean) => (isLost = lost) };
}

test('a message becomes one job, however often it is delivered', async () => {
  const { table, outcomeOf } = world();
  const one = message('1', '{"scene":42}');
  assert.deepEqual([await outcomeOf(one), await outcomeOf(one)], ['handled', 'duplicate']);
  const copy = message('2', '{"scene":7}', { dedupId: 'd' });
  assert.deepEqual([await outcomeOf(copy), await outcomeOf({ ...copy, id: '3' })], ['handled', 'duplicate']);
  assert.deepEqual(
    [...table.jobs.values()].map(({ role, payload }) => [role, payload]),
    [
      ['ingest', { scene: 42 }],
      ['ingest', { scene: 7 }],
    ],
  );
});

test('T20: a commit of unknown outcome is a retry, and its redelivery finds the job', async () => {
  const { table, outcomeOf, loses } = world();
  loses(true);
  assert.equal(await outcomeOf(message('1', '1')), 'retry STORE_UNAVAILABLE');
  loses(false);
  assert.deepEqual([await outcomeOf(message('1', '1')), table.jobs.size], ['duplicate', 1]);
});

test('T13: another content under one dedupId is a dead letter, and so is what is no job', async () => {
  const { outcomeOf, table } = world();
  await outcomeOf(message('1', '1', { dedupId: 'd' }));
  assert.equal(await outcomeOf(message('2', '2', { dedupId: 'd' })), 'deadLetter KEY_CONFLICT');
  assert.equal(await outcomeOf(message('3', JSON.stringify('x'.repeat(9_000)))), 'deadLetter LIMIT_EXCEEDED');
  assert.match(await outcomeOf(message('4', '{')), /^retry/);
  assert.equal(table.jobs.size, 1);
});
