/** The five methods that list, and their pages. */
import { of, refused, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Lists');

/** The names on each page, at most ten pages. */
async function pages(
  world: PubsubWorld,
  method: string,
  field: string,
  request: Fields,
): Promise<string[][]> {
  const all: string[][] = [];
  let pageToken = '';
  do {
    const answer = await world.call(method, { ...request, pageToken });
    const entries = answer[field] as readonly (string | { name: string })[];
    all.push(entries.map((entry) => (typeof entry === 'string' ? entry : entry.name)));
    pageToken = String(answer['nextPageToken']);
  } while (pageToken !== '' && all.length < 10);
  return all;
}

const IDS = ['aaa', 'bbb', 'ccc', 'ddd', 'eee'];

type List = Readonly<{
  method: string;
  field: string;
  request: (world: PubsubWorld) => Fields;
  /** What each id becomes in this list. */
  fill: (world: PubsubWorld, id: string) => Promise<unknown>;
  name: (world: PubsubWorld, id: string) => string;
}>;

const ofProject = (world: PubsubWorld): Fields => ({ project: `projects/${world.project}` });
const ofTopic = (world: PubsubWorld): Fields => ({ topic: world.topic('orders') });
const subscribe = (world: PubsubWorld, id: string) => world.create('orders', id);
const capture = async (world: PubsubWorld, id: string): Promise<void> => {
  await world.create('orders', id);
  await world.call('CreateSnapshot', { name: world.snapshot(id), subscription: world.subscription(id) });
};

const LISTS: readonly List[] = [
  {
    method: 'ListTopics',
    field: 'topics',
    request: ofProject,
    fill: (world, id) => world.pubsub.createTopic(id),
    name: (world, id) => world.topic(id),
  },
  {
    method: 'ListSubscriptions',
    field: 'subscriptions',
    request: ofProject,
    fill: subscribe,
    name: (world, id) => world.subscription(id),
  },
  {
    method: 'ListSnapshots',
    field: 'snapshots',
    request: ofProject,
    fill: capture,
    name: (world, id) => world.snapshot(id),
  },
  {
    method: 'ListTopicSubscriptions',
    field: 'subscriptions',
    request: ofTopic,
    fill: subscribe,
    name: (world, id) => world.subscription(id),
  },
  {
    method: 'ListTopicSnapshots',
    field: 'snapshots',
    request: ofTopic,
    fill: capture,
    name: (world, id) => world.snapshot(id),
  },
];

const casesOf = ({ method, field, request, fill, name }: List): readonly PubsubCase[] => [
  make(`${method} names everything of its kind`, PROTO, async (world) => {
    for (const id of IDS) await fill(world, id);
    const [names = []] = await pages(world, method, field, request(world));
    same(
      names.toSorted(),
      IDS.map((id) => name(world, id)),
    );
  }),
  make(`${method} gives pages of the size asked for, each entry once`, PROTO, async (world) => {
    for (const id of IDS) await fill(world, id);
    const seen = await pages(world, method, field, { ...request(world), pageSize: 2 });
    same(
      seen.map(({ length }) => length),
      [2, 2, 1],
      `pages of ${seen.map(({ length }) => length).join()} entries`,
    );
    same(
      seen.flat().toSorted(),
      IDS.map((id) => name(world, id)),
    );
  }),
];

export const lists: readonly PubsubCase[] = [
  ...LISTS.flatMap(casesOf),
  make('ListTopics shows the topics of its project only', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    const { topics } = await world.call('ListTopics', { project: `projects/${world.project}-other` });
    same(topics, []);
  }),
  make('ListTopicSubscriptions of a topic that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(world.call('ListTopicSubscriptions', { topic: world.topic('missing') }), 'NOT_FOUND', 'it'),
  ),
  make('ListTopicSnapshots of a topic that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(world.call('ListTopicSnapshots', { topic: world.topic('missing') }), 'NOT_FOUND', 'it'),
  ),
];
