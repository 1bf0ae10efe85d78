/** Names of topics, subscriptions and snapshots, and labels. */
import assert from 'node:assert/strict';
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { LABELS, NAMES, PROTO } from '../sources.ts';
import type { PubsubWorld } from '../world.ts';

const named = of('Names');
const labelled = of('Labels');

const ILLEGAL: Readonly<Record<string, string>> = {
  'of 2 characters': 'ab',
  'of 256 characters': 'a'.repeat(256),
  'that begins with a digit': '1orders',
  'that begins with goog': 'google-orders',
  'with a character that is not allowed': 'orders!',
  'with a letter outside A to Z': 'bestellung-ä',
};
const LEGAL: Readonly<Record<string, string>> = {
  'of 3 characters': 'abc',
  'of 255 characters': 'a'.repeat(255),
  'with every kind of character that is allowed': 'Az0-_.~+%',
};

type Kind = Readonly<{ kind: string; create(world: PubsubWorld, id: string): Promise<unknown> }>;
const KINDS: readonly Kind[] = [
  { kind: 'topic', create: (world, id) => world.call('CreateTopic', { name: world.topic(id) }) },
  {
    kind: 'subscription',
    async create(world, id) {
      await world.pubsub.createTopic('orders');
      await world.call('CreateSubscription', { name: world.subscription(id), topic: world.topic('orders') });
    },
  },
  {
    kind: 'snapshot',
    async create(world, id) {
      await world.create('orders', 'orders-sub');
      const subscription = world.subscription('orders-sub');
      await world.call('CreateSnapshot', { name: world.snapshot(id), subscription });
    },
  },
];

const LABELLED: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['A label key with an uppercase letter', { Team: 'blue' }],
  ['A label key that begins with a digit', { '1team': 'blue' }],
  ['A label key of 64 characters', { ['k'.repeat(64)]: 'blue' }],
  ['An empty label key', { '': 'blue' }],
  ['A label value with an uppercase letter', { team: 'Blue' }],
  ['A label value of 64 characters', { team: 'v'.repeat(64) }],
  ['65 labels', Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, 'v']))],
];

export const names: readonly PubsubCase[] = [
  ...KINDS.flatMap(({ kind, create }) => [
    ...Object.entries(LEGAL).map(([what, id]) =>
      named(`A ${kind} name ${what} is accepted`, NAMES, async (world) => {
        await accepted(create(world, id), `the name ${what}`);
      }),
    ),
    ...Object.entries(ILLEGAL).map(([what, id]) =>
      named(`A ${kind} name ${what} is INVALID_ARGUMENT`, NAMES, (world) =>
        refused(create(world, id), 'INVALID_ARGUMENT', `the name ${what}`),
      ),
    ),
  ]),
  named('A name without its project and kind is INVALID_ARGUMENT', NAMES, async (world) => {
    await refused(world.call('CreateTopic', { name: 'orders' }), 'INVALID_ARGUMENT', 'the name orders');
  }),
  named('CreateSubscription makes up a name when it is given none', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    const { name } = await accepted(
      world.call('CreateSubscription', { topic: world.topic('orders') }),
      'a subscription without a name',
    );
    assert.match(String(name), new RegExp(`^projects/${world.project}/subscriptions/.{3,}$`));
  }),
  named('CreateSnapshot makes up a name when it is given none', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    const { name } = await accepted(
      world.call('CreateSnapshot', { subscription: world.subscription('orders-sub') }),
      'a snapshot without a name',
    );
    assert.match(String(name), new RegExp(`^projects/${world.project}/snapshots/.{3,}$`));
  }),
  ...LABELLED.map(([what, labels]) =>
    labelled(`${what} ${what === '65 labels' ? 'are' : 'is'} INVALID_ARGUMENT`, LABELS, (world) =>
      refused(world.call('CreateTopic', { name: world.topic('orders'), labels }), 'INVALID_ARGUMENT', what),
    ),
  ),
  labelled(
    '64 labels, keys and values of 63 characters and empty values are accepted',
    LABELS,
    async (world) => {
      const labels = Object.fromEntries(
        Array.from({ length: 64 }, (_, index) => [
          `${'k'.repeat(61)}${index + 10}`,
          index === 0 ? '' : 'v'.repeat(63),
        ]),
      );
      const made = await accepted(world.call('CreateTopic', { name: world.topic('orders'), labels }), 'they');
      same(made['labels'], labels);
    },
  ),
  labelled('International characters are accepted in labels', LABELS, async (world) => {
    const labels = { größe: '日本' };
    await accepted(world.call('CreateTopic', { name: world.topic('orders'), labels }), 'größe: 日本');
  }),
  labelled('Subscriptions have labels', PROTO, async (world) => {
    await world.create('orders', 'orders-sub', { labels: { team: 'blue' } });
    const { labels } = await world.call('GetSubscription', {
      subscription: world.subscription('orders-sub'),
    });
    same(labels, { team: 'blue' });
  }),
  labelled('Snapshots have labels, which UpdateSnapshot changes', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    const [name, subscription] = [world.snapshot('orders-snap'), world.subscription('orders-sub')];
    await world.call('CreateSnapshot', { name, subscription, labels: { team: 'blue' } });
    const updateMask = { paths: ['labels'] };
    const request = { snapshot: { name, labels: { team: 'red' } }, updateMask };
    await accepted(world.call('UpdateSnapshot', request), 'UpdateSnapshot of the labels');
    same((await world.call('GetSnapshot', { snapshot: name }))['labels'], { team: 'red' });
  }),
];
