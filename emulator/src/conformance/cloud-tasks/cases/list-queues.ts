/** ListQueues: order, pages, filters. */
import assert from 'node:assert/strict';
import { openQueue, refused, section, type TasksCase } from '../section.ts';
import { LIST_QUEUES, LIST_QUEUES_FILTER } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Listing queues');
const HOUR_MS = 3_600_000;

async function page(world: TasksWorld, request: object): Promise<{ ids: string[]; next: string }> {
  const reply = await world.call('ListQueues', { parent: world.parent, ...request });
  const queues = reply['queues'] as readonly { name: string }[];
  return {
    ids: queues.map(({ name }) => name.split('/').at(-1) ?? ''),
    next: String(reply['nextPageToken']),
  };
}
async function open(world: TasksWorld, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await openQueue(world, {}, id);
}

export const listQueuesCases: readonly TasksCase[] = [
  of('returns queues in lexicographical order', LIST_QUEUES, async (world) => {
    await open(world, 'c', 'a', 'b');
    assert.deepEqual((await page(world, {})).ids, ['a', 'b', 'c']);
  }),
  of('Google’s client iterates over all pages', LIST_QUEUES, async (world) => {
    await open(world, 'a', 'b', 'c', 'd', 'e');
    const ids: string[] = [];
    for await (const { name } of world.client().listQueuesAsync({ parent: world.parent, pageSize: 2 })) {
      ids.push(name?.split('/').at(-1) ?? '');
    }
    assert.deepEqual(ids, ['a', 'b', 'c', 'd', 'e']);
  }),
  of('returns an empty token with the last page', LIST_QUEUES, async (world) => {
    await open(world, 'a', 'b', 'c');
    const first = await page(world, { pageSize: 2 });
    const second = await page(world, { pageSize: 2, pageToken: first.next });
    assert.deepEqual([first.ids, second.ids, second.next], [['a', 'b'], ['c'], '']);
  }),
  of('returns no queues of another location', LIST_QUEUES, async (world) => {
    await open(world, 'a');
    assert.deepEqual((await page(world, { parent: 'projects/demo-project/locations/europe-west1' })).ids, []);
  }),
  of('returns no queues that were deleted', LIST_QUEUES, async (world) => {
    await open(world, 'a', 'b');
    await world.call('DeleteQueue', { name: `${world.parent}/queues/a` });
    assert.deepEqual((await page(world, {})).ids, ['b']);
  }),
  of('accepts a page size above the maximum of 9,800', LIST_QUEUES, async (world) => {
    await open(world, 'a');
    assert.deepEqual((await page(world, { pageSize: 9_801 })).ids, ['a']);
  }),
  of('answers INVALID_ARGUMENT for a negative page size', LIST_QUEUES, async (world) => {
    await refused(page(world, { pageSize: -1 }), 'INVALID_ARGUMENT');
  }),
  of('answers INVALID_ARGUMENT for a page token that is none', LIST_QUEUES, async (world) => {
    await refused(page(world, { pageToken: 'nonsense' }), 'INVALID_ARGUMENT');
  }),
  of('accepts a page token for two hours, and no longer', LIST_QUEUES, async (world) => {
    await open(world, 'a', 'b');
    const { next } = await page(world, { pageSize: 1 });
    await world.pass(2 * HOUR_MS);
    assert.deepEqual((await page(world, { pageSize: 1, pageToken: next })).ids, ['b']);
    await world.pass(1);
    await refused(page(world, { pageSize: 1, pageToken: next }), 'INVALID_ARGUMENT');
  }),
  of('answers INVALID_ARGUMENT for a parent that is no location', LIST_QUEUES, async (world) => {
    await refused(page(world, { parent: 'projects/p' }), 'INVALID_ARGUMENT');
  }),
  of('filters by the state', LIST_QUEUES_FILTER, async (world) => {
    await open(world, 'a', 'b', 'c');
    await world.call('PauseQueue', { name: `${world.parent}/queues/b` });
    assert.deepEqual((await page(world, { filter: 'state: PAUSED' })).ids, ['b']);
    assert.deepEqual((await page(world, { filter: 'state != PAUSED' })).ids, ['a', 'c']);
  }),
  of('filters by comparing numbers', LIST_QUEUES_FILTER, async (world) => {
    for (const [id, maxDispatchesPerSecond] of [
      ['a', 1],
      ['b', 10],
      ['c', 100],
    ] as const) {
      await openQueue(world, { rateLimits: { maxDispatchesPerSecond } }, id);
    }
    const filtered = async (filter: string): Promise<string> => (await page(world, { filter })).ids.join('');
    const field = 'rate_limits.max_dispatches_per_second';
    assert.deepEqual(
      [
        await filtered(`${field}>1`),
        await filtered(`${field}>=10`),
        await filtered(`${field}<10`),
        await filtered(`${field}<=10`),
        await filtered(`${field}=10`),
      ],
      ['bc', 'bc', 'a', 'ab', 'b'],
    );
  }),
  of('filters by several conditions', LIST_QUEUES_FILTER, async (world) => {
    for (const [id, maxAttempts] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ] as const) {
      await openQueue(world, { retryConfig: { maxAttempts } }, id);
    }
    const { ids } = await page(world, {
      filter: 'retryConfig.maxAttempts > 1 AND name: queues AND NOT name: "queues/c"',
    });
    assert.deepEqual(ids, ['b']);
  }),
  of(
    'answers INVALID_ARGUMENT for a filter by a field that queues do not have',
    LIST_QUEUES_FILTER,
    async (world) => {
      await refused(page(world, { filter: 'colour = red' }), 'INVALID_ARGUMENT', /colour/);
    },
  ),
  of(
    'answers INVALID_ARGUMENT when the filter changes between two pages',
    LIST_QUEUES_FILTER,
    async (world) => {
      await open(world, 'a', 'b');
      const { next } = await page(world, { pageSize: 1, filter: 'state: RUNNING' });
      await refused(page(world, { pageSize: 1, pageToken: next }), 'INVALID_ARGUMENT');
    },
  ),
];
