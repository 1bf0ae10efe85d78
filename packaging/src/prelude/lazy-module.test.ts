import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadLazily } from './lazy-module.ts';

test('a lazy module runs once, when a property of it is first read, and is then what it exports', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'lazy-module-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'classes.js');
  const counter = 'globalThis.lazyModuleRuns = (globalThis.lazyModuleRuns ?? 0) + 1;';
  await writeFile(path, `${counter} module.exports = { google: { Message: class Message {} } };`);
  const runs = (): number => Reflect.get(globalThis, 'lazyModuleRuns') ?? 0;
  t.after(() => Reflect.deleteProperty(globalThis, 'lazyModuleRuns'));
  const require = createRequire(join(folder, 'index.js'));

  loadLazily(require, path);
  const held = require(path);
  assert.equal(held.__esModule, true);
  assert.equal(runs(), 0);
  assert.equal(new held.google.Message().constructor.name, 'Message');
  assert.equal(runs(), 1);
  assert.deepEqual(Object.keys(held), ['google']);
  assert.equal('google' in held, true);
  assert.equal('other' in held, false);
  assert.equal(Object.getOwnPropertyDescriptor(held, 'other'), undefined);
  assert.equal(require(path).google, held.google);
  loadLazily(require, path);
  assert.equal(require(path).google, held.google);
  assert.equal(runs(), 1);
});

test('the exported message classes of the clients are whole once they are asked for', async () => {
  await import('./prelude.ts');
  const require = createRequire(import.meta.url);
  const { v1, protos } = require('@google-cloud/pubsub');
  assert.equal(typeof v1.PublisherClient, 'function');
  const { PubsubMessage } = protos.google.pubsub.v1;
  assert.deepEqual(PubsubMessage.decode(PubsubMessage.encode({ messageId: '7' }).finish()).messageId, '7');
});

test('what another module exports as well is had without it, and all else is loaded', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'lazy-module-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'transport.js');
  await writeFile(path, 'globalThis.transportRuns = true; module.exports = { shared: 1, own: 2 };');
  t.after(() => Reflect.deleteProperty(globalThis, 'transportRuns'));
  const require = createRequire(join(folder, 'index.js'));
  loadLazily(require, path, { shared: () => 1 });
  const held = require(path);
  assert.equal(held.shared, 1);
  assert.equal(Reflect.get(globalThis, 'transportRuns'), undefined);
  assert.equal(held.own, 2);
  assert.equal(Reflect.get(globalThis, 'transportRuns'), true);
});

test('the clients share one google-gax: what is replaced in one would be missing in another', () => {
  const require = createRequire(import.meta.url);
  const pubsub = require.resolve('@google-cloud/pubsub');
  const firestore = require.resolve('@google-cloud/firestore');
  const using = [
    pubsub,
    firestore,
    require.resolve('@google-cloud/tasks'),
    createRequire(pubsub).resolve('@google-cloud/pubsub-api'),
    createRequire(firestore).resolve('@google-cloud/firestore-api'),
  ];
  for (const path of using) {
    assert.equal(createRequire(path).resolve('google-gax'), require.resolve('google-gax'), path);
  }
});
