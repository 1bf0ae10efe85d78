/** What an organisation may ask for: keys of its own, regions, a private pool; in everything that can have it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at } from './facts/values.ts';
import { plan, type Planned, readPlan } from './plans.ts';
import { terraform } from './terraform.ts';

const KEY = 'projects/keys/locations/europe-west1/keyRings/ring/cryptoKeys/key';
const POOL = 'projects/demo-project/locations/europe-west1/workerPools/private';
const there = await terraform();

/** Where a resource of a type has its key. */
const KEYS: Readonly<Record<string, readonly (string | number)[]>> = {
  google_pubsub_topic: ['kms_key_name'],
  google_firestore_database: ['cmek_config', 'kms_key_name'],
  google_redis_instance: ['customer_managed_key'],
  google_secret_manager_secret: [
    'replication',
    'user_managed',
    'replicas',
    'customer_managed_encryption',
    'kms_key_name',
  ],
};
const keyOf = ({ type, values }: Planned): unknown => at(values, ...((KEYS[type] ?? []) as string[]));

test('with a key, regions and a pool, everything that can have them has them', {
  skip: there === undefined && 'terraform is not on the path',
}, async () => {
  try {
    const planned = await plan(there!, 'redis', {
      kms_key: KEY,
      storage_regions: '["europe-west1"]',
      worker_pool: POOL,
    });
    const kinds = new Set<string>();
    for (const one of planned.filter(({ type }) => type in KEYS)) {
      assert.equal(keyOf(one), KEY, one.address);
      kinds.add(one.type);
      if (one.type === 'google_pubsub_topic') {
        const regions = at(one.values, 'message_storage_policy', 'allowed_persistence_regions');
        assert.deepEqual(regions, ['europe-west1'], one.address);
      }
    }
    assert.deepEqual(kinds, new Set(Object.keys(KEYS)));
    const functions = planned.filter(({ type }) => type === 'google_cloudfunctions2_function');
    for (const { values, address } of functions)
      assert.equal(at(values, 'build_config', 'worker_pool'), POOL, address);
  } finally {
    await there?.close();
  }
});

test('no caller from outside may call anything, and no grant is to all users', async () => {
  for (const name of ['complete', 'redis', 'existing-project'] as const) {
    for (const { address, type, values } of (await readPlan(name)).resources) {
      const member = values['member'];
      if (typeof member === 'string') assert.match(member, /^serviceAccount:/, address);
      if (type === 'google_cloud_run_v2_service')
        assert.equal(values['ingress'], 'INGRESS_TRAFFIC_INTERNAL_ONLY', address);
      if (type === 'google_cloudfunctions2_function')
        assert.equal(at(values, 'service_config', 'ingress_settings'), 'ALLOW_INTERNAL_ONLY', address);
    }
  }
});
