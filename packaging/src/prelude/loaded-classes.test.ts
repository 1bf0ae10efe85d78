import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { GrpcClient } from 'google-gax';
import { type Described, namesOf } from './described.ts';
import { type Build, type LazyMethod, lazyServices } from './lazy-services.ts';
import { leanTypes } from './lean-types.ts';
import { loadedClasses } from './loaded-classes.ts';

const require = createRequire(import.meta.url);
const GAX_LOADS = Reflect.get(GrpcClient.prototype, 'loadProtoJSON') as GrpcClient['loadProtoJSON'];
const { AS_GAX_READS, EXPECTED } = await import('./prelude.ts');

const client = createRequire(require.resolve('@google-cloud/firestore'));
const protos = join(dirname(dirname(client.resolve('@google-cloud/firestore-api'))), 'protos');
const path = join(protos, 'protos.js');
const all = client(join(protos, 'protos.json')) as Described;
const SERVICE = 'google.firestore.v1.Firestore';
const methods = EXPECTED.flat().filter((name) => name.startsWith(`${SERVICE}.`));

const nothing: Build = () => assert.fail('a message was built');
const services = lazyServices(
  all,
  [methods],
  nothing,
  AS_GAX_READS,
  loadedClasses(require, () => path),
);

/** The same methods as google-gax itself defines them. */
const gax = new GrpcClient({ auth: undefined } as never);
const whole = GAX_LOADS.call(gax, all as Parameters<typeof GAX_LOADS>[0], true);
const theirs = SERVICE.split('.').reduce<unknown>((at, key) => Reflect.get(at as object, key), whole) as {
  service: Record<string, LazyMethod>;
};
const pair = (name: string) => ({ ours: services[SERVICE]![name]!, own: theirs.service[name]! });

const time = { seconds: '1764512695', nanos: 123_456_000 };
const fields = {
  none: { nullValue: 'NULL_VALUE' },
  flag: { booleanValue: false },
  count: { integerValue: '9007199254740993' },
  part: { doubleValue: -0.5 },
  at: { timestampValue: time },
  text: { stringValue: 'ä\u{1F600}' },
  bytes: { bytesValue: Buffer.from([0, 255]) },
  reference: { referenceValue: 'projects/p/databases/(default)/documents/c/d' },
  place: { geoPointValue: { latitude: 1.5, longitude: -2 } },
  list: { arrayValue: { values: [{ integerValue: 1 }, { stringValue: '' }] } },
  map: { mapValue: { fields: { inner: { mapValue: { fields: {} } } } } },
};
const database = 'projects/p/databases/(default)';
const document = { name: `${database}/documents/c/d`, fields, createTime: time, updateTime: time };
const REQUESTS: Record<string, readonly object[]> = {
  BatchGetDocuments: [
    { database, documents: [document.name], transaction: Buffer.from('t') },
    { database, documents: [], newTransaction: { readWrite: { retryTransaction: Buffer.from('r') } } },
    { database, mask: { fieldPaths: ['a.b'] }, readTime: time },
  ],
  Commit: [
    {
      database,
      transaction: Buffer.alloc(0),
      writes: [
        { update: document, currentDocument: { exists: false } },
        {
          update: { name: document.name, fields: {} },
          updateMask: { fieldPaths: ['x'] },
          updateTransforms: [
            { fieldPath: 'at', setToServerValue: 'REQUEST_TIME' },
            { fieldPath: 'n', increment: { integerValue: 1 } },
            { fieldPath: 'l', appendMissingElements: { values: [{ stringValue: 'v' }] } },
          ],
          currentDocument: { updateTime: time },
        },
        { delete: document.name },
      ],
    },
  ],
  BeginTransaction: [{ database }, { database, options: { readOnly: { readTime: time } } }],
  Rollback: [{ database, transaction: Buffer.from('t') }],
  RunQuery: [
    {
      parent: document.name,
      structuredQuery: {
        from: [{ collectionId: 'held', allDescendants: false }],
        where: {
          compositeFilter: {
            op: 'AND',
            filters: [
              {
                fieldFilter: { field: { fieldPath: 'n' }, op: 'GREATER_THAN_OR_EQUAL', value: fields.count },
              },
              { unaryFilter: { field: { fieldPath: 'm' }, op: 'IS_NULL' } },
            ],
          },
        },
        orderBy: [{ field: { fieldPath: 'n' }, direction: 'DESCENDING' }],
        startAt: { values: [fields.count], before: true },
        limit: { value: 2 },
      },
      transaction: Buffer.from('t'),
      explainOptions: { analyze: true },
    },
  ],
};
const RESPONSES: Record<string, readonly object[]> = {
  BatchGetDocuments: [
    { found: document, readTime: time },
    { missing: 'm', transaction: Buffer.from('t') },
  ],
  Commit: [{ writeResults: [{ updateTime: time, transformResults: [fields.at] }, {}], commitTime: time }],
  BeginTransaction: [{ transaction: Buffer.from('t') }],
  Rollback: [{}],
  RunQuery: [
    { document, readTime: time, skippedResults: 3, done: true },
    {
      explainMetrics: {
        planSummary: { indexesUsed: [{ fields: { a: { stringValue: 's' }, n: { numberValue: 1 } } }] },
        executionStats: { resultsReturned: '2', executionDuration: { seconds: 1 }, readOperations: 4 },
      },
    },
  ],
};

test('a module that is not loaded has no classes, and is not loaded for them', () => {
  delete require.cache[path];
  const classes = loadedClasses(require, () => path);
  assert.equal(classes('google.firestore.v1.CommitRequest'), undefined);
  assert.equal(require.cache[path], undefined);
  assert.equal(
    loadedClasses(require, () => assert.fail('not found'))('google.firestore.v1.Value'),
    undefined,
  );
  require('@google-cloud/firestore');
  client(path);
  assert.equal(classes('google.firestore.v1.CommitRequest')?.name, 'CommitRequest');
  for (const name of ['google.firestore.v1', 'google.firestore.v1.constructor', 'toString', '', 'no.such']) {
    assert.equal(classes(name), undefined, name);
  }
});

test("Firestore's requests and responses are the same bytes and objects as by google-gax, and nothing is built", () => {
  client(path);
  for (const [name, requests] of Object.entries(REQUESTS)) {
    const { ours, own } = pair(name);
    for (const request of requests as Record<string, unknown>[]) {
      const bytes = own.requestSerialize(request);
      assert.ok(bytes.length > 0);
      assert.deepEqual(ours.requestSerialize(request), bytes, name);
      assert.deepEqual(ours.requestDeserialize(bytes), own.requestDeserialize(bytes), name);
    }
    for (const response of RESPONSES[name]! as Record<string, unknown>[]) {
      const bytes = own.responseSerialize(response);
      assert.deepEqual(ours.responseSerialize(response), bytes, name);
      assert.deepEqual(ours.responseDeserialize(bytes), own.responseDeserialize(bytes), name);
    }
  }
  assert.deepEqual(
    Object.keys(REQUESTS).toSorted(),
    methods.map((name) => name.slice(SERVICE.length + 1)).toSorted(),
  );
});

test('what a request may not hold is refused by both', () => {
  client(path);
  const { ours, own } = pair('Commit');
  for (const request of [{ writes: 'none' }, { writes: [{ update: 'text' }] }, { writes: [7] }]) {
    assert.throws(() => own.requestSerialize(request), TypeError);
    assert.throws(() => ours.requestSerialize(request), TypeError);
  }
});

test('every field of the description is one of its class', () => {
  const classes = loadedClasses(require, () => path);
  client(path);
  const names = namesOf(all);
  const types = ['BatchGetDocuments', 'Commit', 'BeginTransaction', 'Rollback', 'RunQuery'].map(
    (name) => `google.firestore.v1.${name}Request`,
  );
  types.push(
    ...['BatchGetDocuments', 'Commit', 'RunQuery'].map((name) => `google.firestore.v1.${name}Response`),
  );
  let count = 0;
  const check = (described: Described, scope: string): void => {
    for (const [key, inner] of Object.entries(described.nested ?? {})) {
      const name = scope === '' ? key : `${scope}.${key}`;
      for (const field of Object.keys(inner.fields ?? {})) {
        const camel = field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
        const prototype: unknown = Reflect.get(classes(name) ?? {}, 'prototype');
        assert.ok(camel in Object(prototype), `${name}.${field}`);
        count += 1;
      }
      check(inner, name);
    }
  };
  check(leanTypes(all, names, types), '');
  assert.ok(count > 80, `${count} fields`);
});
