/** Snapshots: their life, and the methods that manage them. */
import assert from 'node:assert/strict';
import { of, refused, same, type PubsubCase } from '../expect.ts';
import { ERROR_CODES, PROTO } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const snap = of('Snapshots');
const SUB = 'orders-sub';
const SNAP = 'orders-snap';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const toSnapshot = (world: PubsubWorld) =>
  world.call('Seek', { subscription: world.subscription(SUB), snapshot: world.snapshot(SNAP) });
const capture = (world: PubsubWorld, fields: Fields = {}) =>
  world.call('CreateSnapshot', {
    name: world.snapshot(SNAP),
    subscription: world.subscription(SUB),
    ...fields,
  });

export const snapshots: readonly PubsubCase[] = [
  snap('CreateSnapshot names the topic and expires after 7 days', PROTO, async (world) => {
    await world.create('orders', SUB);
    const { name, topic, expireTime } = await capture(world);
    same([name, topic], [world.snapshot(SNAP), world.topic('orders')]);
    const left = Number((expireTime as { seconds: string }).seconds) * 1_000 - world.now();
    assert.ok(Math.abs(left - 7 * DAY_MS) < 60_000, `it expires in ${left / HOUR_MS} hours`);
  }),
  snap(
    'A snapshot lives as much shorter as its oldest message is old',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.publish('orders', 'a');
      await world.pass(3 * DAY_MS);
      const { expireTime } = await capture(world);
      const left = Number((expireTime as { seconds: string }).seconds) * 1_000 - world.now();
      assert.ok(Math.abs(left - 4 * DAY_MS) < 60_000, `it expires in ${left / HOUR_MS} hours`);
    },
    'waits three days',
  ),
  snap(
    'One that would expire in less than 1 hour is FAILED_PRECONDITION',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.publish('orders', 'a');
      await world.pass(7 * DAY_MS - HOUR_MS + 60_000);
      await refused(capture(world), 'FAILED_PRECONDITION', 'CreateSnapshot');
    },
    'waits seven days',
  ),
  snap(
    'An expired snapshot is gone',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await capture(world);
      await world.pass(7 * DAY_MS + 60_000);
      await refused(
        world.call('GetSnapshot', { snapshot: world.snapshot(SNAP) }),
        'NOT_FOUND',
        'GetSnapshot',
      );
    },
    'waits seven days',
  ),
  snap('CreateSnapshot of one that exists is ALREADY_EXISTS', PROTO, async (world) => {
    await world.create('orders', SUB);
    await capture(world);
    await refused(capture(world), 'ALREADY_EXISTS', 'the second creation');
  }),
  snap('CreateSnapshot of a subscription that does not exist is NOT_FOUND', PROTO, (world) =>
    refused(capture(world), 'NOT_FOUND', 'CreateSnapshot'),
  ),
  ...['GetSnapshot', 'DeleteSnapshot'].map((method) =>
    snap(`${method} of one that does not exist is NOT_FOUND`, ERROR_CODES, (world) =>
      refused(world.call(method, { snapshot: world.snapshot('missing') }), 'NOT_FOUND', method),
    ),
  ),
  snap('A deleted snapshot is gone', PROTO, async (world) => {
    await world.create('orders', SUB);
    await capture(world);
    await world.call('DeleteSnapshot', { snapshot: world.snapshot(SNAP) });
    await refused(toSnapshot(world), 'NOT_FOUND', 'Seek');
  }),
  snap('UpdateSnapshot of one that does not exist is NOT_FOUND', ERROR_CODES, (world) => {
    const request = { snapshot: { name: world.snapshot('missing') }, updateMask: { paths: ['labels'] } };
    return refused(world.call('UpdateSnapshot', request), 'NOT_FOUND', 'UpdateSnapshot');
  }),
  snap('UpdateSnapshot of the topic is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.create('orders', SUB);
    await capture(world);
    const request = {
      snapshot: { name: world.snapshot(SNAP), topic: 'x' },
      updateMask: { paths: ['topic'] },
    };
    await refused(world.call('UpdateSnapshot', request), 'INVALID_ARGUMENT', 'the mask topic');
  }),
  snap('UpdateSnapshot without a mask is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.create('orders', SUB);
    await capture(world);
    const snapshot = { name: world.snapshot(SNAP) };
    await refused(world.call('UpdateSnapshot', { snapshot }), 'INVALID_ARGUMENT', 'an empty mask');
  }),
];
