/** Policies of topics, subscriptions, snapshots and schemas: google.iam.v1.IAMPolicy. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { AVRO, createSchema, schemaName } from '../schema-world.ts';
import { IAM, POLICY } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Policies');

const PUBLISHER = { role: 'roles/pubsub.publisher', members: ['user:a@example.com'] };

type Kind = readonly [what: string, create: (world: PubsubWorld) => Promise<string>, permission: string];

const KINDS: readonly Kind[] = [
  ['topic', (world) => topic(world), 'pubsub.topics.get'],
  [
    'subscription',
    async (world) => {
      await world.create('orders', 'orders-sub');
      return world.subscription('orders-sub');
    },
    'pubsub.subscriptions.consume',
  ],
  [
    'snapshot',
    async (world) => {
      await world.create('orders', 'orders-sub');
      const name = world.snapshot('orders-shot');
      await world.call('CreateSnapshot', { name, subscription: world.subscription('orders-sub') });
      return name;
    },
    'pubsub.snapshots.seek',
  ],
  [
    'schema',
    async (world) => {
      await createSchema(world, 'AVRO', AVRO);
      return schemaName(world);
    },
    'pubsub.schemas.attach',
  ],
];

async function topic(world: PubsubWorld): Promise<string> {
  await world.call('CreateTopic', { name: world.topic('orders') });
  return world.topic('orders');
}

const get = (world: PubsubWorld, resource: string) => world.call('GetIamPolicy', { resource });
const set = (world: PubsubWorld, resource: string, policy: Fields) =>
  world.call('SetIamPolicy', { resource, policy });

const shown = ({ version, bindings }: Fields): unknown => ({
  version,
  bindings: (bindings as readonly Fields[]).map(({ role, members }) => ({ role, members })),
});

const refusedPolicy = (title: string, policy: Fields): PubsubCase =>
  make(`${title} is INVALID_ARGUMENT, and changes nothing`, POLICY, async (world) => {
    const name = await topic(world);
    await refused(set(world, name, policy), 'INVALID_ARGUMENT', 'SetIamPolicy');
    same(shown(await get(world, name)), { version: 0, bindings: [] });
  });

export const policies: readonly PubsubCase[] = [
  ...KINDS.flatMap(([what, create, permission]) => [
    make(`A ${what} without a policy has an empty one, with an etag`, IAM, async (world) => {
      const policy = await accepted(get(world, await create(world)), 'GetIamPolicy');
      same(shown(policy), { version: 0, bindings: [] });
      same((policy['etag'] as Buffer).length > 0, true, 'an etag');
    }),
    make(`The policy of a ${what} can be set and read`, IAM, async (world) => {
      const name = await create(world);
      const answered = await accepted(set(world, name, { bindings: [PUBLISHER] }), 'SetIamPolicy');
      same(shown(answered), { version: 1, bindings: [PUBLISHER] });
      same(await get(world, name), answered);
    }),
    make(`TestIamPermissions answers for a ${what}`, IAM, async (world) => {
      const request = { resource: await create(world), permissions: [permission] };
      same((await world.call('TestIamPermissions', request))['permissions'], [permission]);
    }),
  ]),
  make('The real client sets, gets and tests the policy of a topic', IAM, async (world) => {
    const [made] = await world.pubsub.createTopic('orders');
    const [policy] = await made.iam.getPolicy();
    await made.iam.setPolicy({ bindings: [PUBLISHER], etag: policy.etag ?? '' });
    const [changed] = await made.iam.getPolicy();
    same(changed.bindings?.[0]?.members, PUBLISHER.members);
    const [permissions] = await made.iam.testPermissions(['pubsub.topics.update']);
    same(permissions, { 'pubsub.topics.update': true });
  }),
  make('SetIamPolicy replaces the policy', IAM, async (world) => {
    const name = await topic(world);
    await set(world, name, { bindings: [PUBLISHER] });
    const viewer = { role: 'roles/pubsub.viewer', members: ['allUsers'] };
    await set(world, name, { bindings: [viewer] });
    same(shown(await get(world, name)), { version: 1, bindings: [viewer] });
  }),
  make('SetIamPolicy gives another etag', POLICY, async (world) => {
    const name = await topic(world);
    const first = await set(world, name, { bindings: [PUBLISHER] });
    const second = await set(world, name, { bindings: [PUBLISHER] });
    same((first['etag'] as Buffer).equals(second['etag'] as Buffer), false, 'the same etag');
  }),
  make('SetIamPolicy with the etag of the policy is OK, with an older one ABORTED', POLICY, async (world) => {
    const name = await topic(world);
    const { etag } = await get(world, name);
    const bindings = [PUBLISHER];
    await accepted(set(world, name, { bindings, etag }), 'with the etag');
    await refused(set(world, name, { bindings: [], etag }), 'ABORTED', 'with the old etag');
    same(shown(await get(world, name)), { version: 1, bindings });
  }),
  make('SetIamPolicy without an etag overwrites what is there', POLICY, async (world) => {
    const name = await topic(world);
    await set(world, name, { bindings: [PUBLISHER] });
    await accepted(set(world, name, { bindings: [] }), 'SetIamPolicy');
    same(shown(await get(world, name)), { version: 0, bindings: [] });
  }),
  make('A topic created anew has no policy', IAM, async (world) => {
    const name = await topic(world);
    await set(world, name, { bindings: [PUBLISHER] });
    await world.call('DeleteTopic', { topic: name });
    await topic(world);
    same(shown(await get(world, name)), { version: 0, bindings: [] });
  }),
  make('A binding with a condition is kept in version 3', POLICY, async (world) => {
    const condition = { expression: 'request.time < timestamp("2030-01-01T00:00:00Z")', title: 'soon' };
    const bindings = [{ ...PUBLISHER, condition }];
    const policy = await accepted(set(world, await topic(world), { version: 3, bindings }), 'SetIamPolicy');
    same(policy['version'], 3);
    same((policy['bindings'] as { condition: Fields }[])[0]?.condition, {
      ...condition,
      description: '',
      location: '',
    });
  }),
  refusedPolicy('A condition in a policy of version 1', {
    version: 1,
    bindings: [{ ...PUBLISHER, condition: { expression: 'true' } }],
  }),
  refusedPolicy('A version 2', { version: 2, bindings: [PUBLISHER] }),
  refusedPolicy('A role that there is not', { bindings: [{ ...PUBLISHER, role: 'roles/pubsub.none' }] }),
  refusedPolicy('A role without its prefix', { bindings: [{ ...PUBLISHER, role: 'publisher' }] }),
  refusedPolicy('A member without a type', { bindings: [{ ...PUBLISHER, members: ['a@example.com'] }] }),
  refusedPolicy('A binding without members', { bindings: [{ ...PUBLISHER, members: [] }] }),
  refusedPolicy('A policy with 1,501 members', {
    bindings: [
      { ...PUBLISHER, members: Array.from({ length: 1_501 }, (_, index) => `user:u${index}@example.com`) },
    ],
  }),
  make('GetIamPolicy and SetIamPolicy of a missing topic are NOT_FOUND', IAM, async (world) => {
    await refused(get(world, world.topic('missing')), 'NOT_FOUND', 'GetIamPolicy');
    await refused(set(world, world.topic('missing'), { bindings: [] }), 'NOT_FOUND', 'SetIamPolicy');
  }),
  make('TestIamPermissions of a missing topic is an empty list, and no error', IAM, async (world) => {
    const request = { resource: world.topic('missing'), permissions: ['pubsub.topics.get'] };
    same((await accepted(world.call('TestIamPermissions', request), 'it'))['permissions'], []);
  }),
  ...['pubsub.topics.*', '*', 'pubsub.topics.none'].map((permission) =>
    make(`TestIamPermissions of the permission ${permission} is INVALID_ARGUMENT`, IAM, async (world) => {
      const request = { resource: await topic(world), permissions: [permission] };
      await refused(world.call('TestIamPermissions', request), 'INVALID_ARGUMENT', 'it');
    }),
  ),
  make('A project has no policy here', IAM, (world) =>
    refused(get(world, `projects/${world.project}`), 'INVALID_ARGUMENT', 'GetIamPolicy'),
  ),
];
