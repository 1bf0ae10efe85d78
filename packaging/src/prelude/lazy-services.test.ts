import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { GrpcClient, grpc, protobuf } from 'google-gax';
import type { Described } from './described.ts';
import { type Build, type LazyMethod, lazyServices } from './lazy-services.ts';

const require = createRequire(import.meta.url);
const pubsub = require('@google-cloud/pubsub');
const PUBLISH = 'google.pubsub.v1.Publisher.Publish';
const GAX_LOADS = Reflect.get(GrpcClient.prototype, 'loadProtoJSON') as GrpcClient['loadProtoJSON'];
const { AS_GAX_READS } = await import('./prelude.ts');

/** The description that a client of Google's hands to google-gax when it is made. */
function description(Client: new (options: object, gax: object) => object): Described {
  let json: Described | undefined;
  class Recording extends GrpcClient {
    override loadProtoJSON(...[given]: Parameters<GrpcClient['loadProtoJSON']>) {
      json = given as Described;
      return GAX_LOADS.call(this, given);
    }
  }
  new Client(
    { projectId: 'p', sslCreds: grpc.credentials.createInsecure() },
    {
      ...(require('google-gax') as object),
      GrpcClient: Recording,
    },
  );
  assert.ok(json !== undefined);
  return json;
}

const all = description(pubsub.v1.PublisherClient);
const built: Described[] = [];
const build: Build = (given) => {
  built.push(given);
  return protobuf.Root.fromJSON(given as protobuf.INamespace) as unknown as ReturnType<Build>;
};
const lazy = lazyServices(all, [[PUBLISH]], build, AS_GAX_READS);
const methodOf = (service: string, method: string): LazyMethod => lazy[service]![method]!;

/** The same method as google-gax itself defines it. */
function original(service: string, method: string): LazyMethod {
  const client = new GrpcClient({ auth: undefined } as never);
  const loaded = GAX_LOADS.call(client, all as Parameters<typeof GAX_LOADS>[0], true);
  const path = service.split('.').reduce<unknown>((at, key) => Reflect.get(at as object, key), loaded);
  return (path as { service: Record<string, LazyMethod> }).service[method]!;
}

const REQUEST = {
  topic: 'projects/p/topics/t',
  messages: [
    { data: Buffer.from('data'), attributes: { a: 'b' }, orderingKey: 'key' },
    { attributes: { only: 'this' }, publishTime: { seconds: 12, nanos: 5 } },
  ],
};

test('nothing is built before a method is called, and then only what the expected ones need', () => {
  assert.deepEqual(built, []);
  const { requestSerialize } = methodOf('google.pubsub.v1.Publisher', 'Publish');
  assert.ok(requestSerialize(REQUEST).length > 0);
  requestSerialize(REQUEST);
  assert.equal(built.length, 1);
  assert.ok(JSON.stringify(built[0]).length * 10 < JSON.stringify(all).length);
});

test('messages become the same bytes and the same objects as by google-gax', () => {
  const theirs = original('google.pubsub.v1.Publisher', 'Publish');
  const ours = methodOf('google.pubsub.v1.Publisher', 'Publish');
  const bytes = theirs.requestSerialize(REQUEST);
  assert.deepEqual(ours.requestSerialize(REQUEST), bytes);
  assert.deepEqual(ours.requestDeserialize(bytes), theirs.requestDeserialize(bytes));
  const response = theirs.responseSerialize({ messageIds: ['1', '2'] });
  assert.deepEqual(ours.responseDeserialize(response), theirs.responseDeserialize(response));
  for (const key of ['path', 'originalName', 'requestStream', 'responseStream'] as const) {
    assert.equal(ours[key], theirs[key]);
  }
  assert.throws(() => ours.requestSerialize([] as never), /an array is not a PublishRequest/);
});

test('a method that is not expected works as well, from the whole description', () => {
  const theirs = original('google.pubsub.v1.Subscriber', 'StreamingPull');
  const ours = methodOf('google.pubsub.v1.Subscriber', 'StreamingPull');
  assert.deepEqual([ours.requestStream, ours.responseStream], [true, true]);
  const request = { subscription: 's', streamAckDeadlineSeconds: 10, modifyDeadlineAckIds: ['x'] };
  assert.deepEqual(ours.requestSerialize(request), theirs.requestSerialize(request));
  assert.equal(built.at(-1), all);
  assert.equal(built.length, 2);
});

test('methods of one group are built together, and other groups not with them', () => {
  const each: Described[] = [];
  const services = lazyServices(
    all,
    [[PUBLISH, 'google.pubsub.v1.Publisher.GetTopic'], ['google.pubsub.v1.Subscriber.GetSubscription']],
    (given) => {
      each.push(given);
      return protobuf.Root.fromJSON(given as protobuf.INamespace) as unknown as ReturnType<Build>;
    },
    AS_GAX_READS,
  );
  const publisher = services['google.pubsub.v1.Publisher']!;
  publisher['Publish']!.requestSerialize(REQUEST);
  publisher['GetTopic']!.requestSerialize({ topic: 't' });
  assert.equal(each.length, 1);
  assert.doesNotMatch(JSON.stringify(each[0]), /BigQueryConfig/);
  services['google.pubsub.v1.Subscriber']!['GetSubscription']!.requestSerialize({ subscription: 's' });
  assert.equal(each.length, 2);
  assert.match(JSON.stringify(each[1]), /BigQueryConfig/);
});

test('every service and method of the description is there', () => {
  const named = Object.entries(lazy).map(([name, methods]) => [name, Object.keys(methods).length]);
  assert.deepEqual(Object.keys(Object.fromEntries(named)).toSorted(), [
    'google.pubsub.v1.Publisher',
    'google.pubsub.v1.SchemaService',
    'google.pubsub.v1.Subscriber',
  ]);
  for (const [, methods] of named) assert.ok(Number(methods) > 5);
});

test('objects are read as google-gax has them read', () => {
  const {
    includeDirs: _paths,
    keepCase,
    ...options
  } = Reflect.get(GrpcClient, 'defaultOptions').call(GrpcClient);
  assert.equal(keepCase, false);
  assert.deepEqual(options, AS_GAX_READS);
});
