/**
 * The checks of the modules' text: they find nothing in the modules as they are, and each finds the defect that is
 * planted for it.
 */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkLimits } from './limits-check.ts';
import { type Module, readModule, readModules } from './module.ts';
import { checkPolicy } from './policy-check.ts';
import { checkReferences } from './reference-check.ts';
import { loadSchema } from './schema.ts';
import { checkSchema } from './schema-check.ts';
import { withTables } from './tables.ts';
import { TERRAFORM_FOLDER } from './terraform.ts';

const schema = loadSchema();

function allChecks(modules: ReadonlyMap<string, Module>): readonly string[] {
  return [
    ...[...modules.values()].flatMap((module) => [
      ...checkSchema(module, schema),
      ...checkReferences(module, modules, schema),
      ...checkPolicy(module),
    ]),
    ...checkLimits(modules.get('modules/guarantee')!, modules.get('modules/policy')!),
  ];
}

test('the modules and examples are clean', async () => {
  assert.deepEqual(allChecks(await readModules(TERRAFORM_FOLDER)), []);
});

test('the tables of the READMEs are those of the variables and outputs', async () => {
  for (const module of (await readModules(TERRAFORM_FOLDER)).values()) {
    const readme = await readFile(join(module.folder, 'README.md'), 'utf8');
    assert.equal(
      readme,
      withTables(readme, module),
      `${module.name}: run npm run tables -w terraform/checks`,
    );
  }
});

test('every variable and every output is described', async () => {
  for (const module of (await readModules(TERRAFORM_FOLDER)).values()) {
    for (const [name, of] of [...module.variables, ...module.outputs]) {
      assert.equal(typeof of['description'], 'string', `${module.name}: ${name}`);
    }
  }
});

type Planted = Readonly<{ file: string; from: string; to: string; finds: RegExp }>;

const GUARANTEE = 'modules/guarantee/main.tf';
const PLANTED: Readonly<Record<string, Planted>> = {
  'a misspelt argument': {
    file: GUARANTEE,
    from: 'max_delivery_attempts = local',
    to: 'max_delivery_attemps = local',
    finds:
      /dead_letter_policy: there is no argument or block "max_delivery_attemps"; did you mean max_delivery_attempts/,
  },
  'a misspelt argument in a dynamic block': {
    file: GUARANTEE,
    from: 'subnetwork = direct_vpc',
    to: 'subnet = direct_vpc',
    finds: /service_config\.direct_vpc_network_interface: there is no argument or block "subnet"/,
  },
  'a missing required argument': {
    file: 'modules/delay-queues/main.tf',
    from: '  location = var.location\n',
    to: '',
    finds: /google_cloud_tasks_queue\.queues: the argument "location" is required/,
  },
  'a wrong block': {
    file: 'modules/delay-queues/main.tf',
    from: 'rate_limits {',
    to: 'rate_limit {',
    finds: /there is no argument or block "rate_limit"; did you mean rate_limits/,
  },
  'an argument where a block belongs': {
    file: 'modules/sweep/main.tf',
    from: '  retry_config {\n    retry_count = 0\n  }',
    to: '  retry_config = 0',
    finds: /"retry_config" is a block, not an argument/,
  },
  'an output that is set': {
    file: 'modules/store-redis/main.tf',
    from: '  deletion_protection     = var.deletion_protection',
    to: '  deletion_protection = var.deletion_protection\n  host = "10.0.0.1"',
    finds: /"host" is an output and cannot be set/,
  },
  'an unknown type': {
    file: 'modules/sweep/main.tf',
    from: 'resource "google_cloud_scheduler_job"',
    to: 'resource "google_cloud_schedule_job"',
    finds: /there is no such type; did you mean google_cloud_scheduler_job/,
  },
  'a block given twice': {
    file: 'modules/sweep/main.tf',
    from: '  retry_config {\n    retry_count = 0\n  }',
    to: '  retry_config {\n    retry_count = 0\n  }\n\n  retry_config {\n    retry_count = 1\n  }',
    finds: /one block "retry_config" at most, 2 given/,
  },
  'an undeclared variable': {
    file: GUARANTEE,
    from: 'runtime         = var.runtime',
    to: 'runtime         = var.run_time',
    finds: /var\.run_time is not declared/,
  },
  'an attribute that is not there': {
    file: GUARANTEE,
    from: 'topic   = google_pubsub_topic.dead_letters.name\n  role    = "roles/pubsub.publisher"\n  member  = local',
    to: 'topic   = google_pubsub_topic.dead_letters.title\n  role    = "roles/pubsub.publisher"\n  member  = local',
    finds: /google_pubsub_topic\.dead_letters has no attribute title/,
  },
  'a resource that is not there': {
    file: 'modules/sweep/main.tf',
    from: 'depends_on = [google_cloud_run_service_iam_member.sweep]',
    to: 'depends_on = [google_cloud_run_service_iam_member.sweeps]',
    finds: /google_cloud_run_service_iam_member\.sweeps is not there/,
  },
  'an argument that the called module does not have': {
    file: 'examples/minimal/main.tf',
    from: 'source_topic          = google',
    to: 'origin_topic          = google',
    finds:
      /module\.orders_once: modules\/guarantee has no variable origin_topic[\s\S]*source_topic is required/,
  },
  'an output that the called module does not have': {
    file: 'examples/minimal/main.tf',
    from: 'module.store.firestore',
    to: 'module.store.database_id',
    finds: /module\.store has no output database_id/,
  },
  'a dropped grant': {
    file: GUARANTEE,
    from: 'role         = "roles/pubsub.subscriber"',
    to: 'role         = "roles/pubsub.viewer"',
    finds: /the grant is missing: pubsub_subscription \(push\): roles\/pubsub\.subscriber to pubsub_agent/,
  },
  'a grant for the whole project': {
    file: GUARANTEE,
    from: 'resource "google_pubsub_topic_iam_member" "target" {\n  count = local.is_saga ? 0 : 1\n\n  project = var.project_id\n  topic   = var.target_topic\n',
    to: 'resource "google_project_iam_member" "target" {\n  project = var.project_id\n',
    finds: /a grant that src\/grants\.ts does not have: project: roles\/pubsub\.publisher to runtime/,
  },
  'a condition that is gone': {
    file: GUARANTEE,
    from: '  condition {\n    title      = "${var.name}-database"\n    expression = "resource.name == \\"projects/${var.project_id}/databases/${var.firestore.database}\\""\n  }\n',
    to: '',
    finds: /the grant is missing: project: roles\/datastore\.user to runtime, under a condition/,
  },
  'a public invoker': {
    file: GUARANTEE,
    from: 'role     = "roles/run.invoker"\n  member   = google_service_account.push.member',
    to: 'role     = "roles/run.invoker"\n  member   = "allUsers"',
    finds: /is public/,
  },
  'a binding that would remove the rights of others': {
    file: 'modules/sweep/main.tf',
    from: 'resource "google_cloud_run_service_iam_member" "sweep"',
    to: 'resource "google_cloud_run_service_iam_binding" "sweep"',
    finds: /only grants of one right to one member/,
  },
  'a subscription that expires': {
    file: 'modules/republisher/main.tf',
    from: 'ttl = ""',
    to: 'ttl = "2678400s"',
    finds: /expiration_policy must be never/,
  },
  'a subscription without a retry policy': {
    file: GUARANTEE,
    from: '  retry_policy {\n    minimum_backoff = module.policy.retry.minimum_backoff\n    maximum_backoff = module.policy.retry.maximum_backoff\n  }\n',
    to: '',
    finds: /without a retry_policy/,
  },
  'a subscription without dead letters': {
    file: GUARANTEE,
    from: '  dead_letter_policy {\n    dead_letter_topic     = google_pubsub_topic.dead_letters.id\n    max_delivery_attempts = local.limits.max_delivery_attempts\n  }\n',
    to: '',
    finds: /it must have a dead_letter_policy/,
  },
  'a queue that deletes tasks after some attempts': {
    file: 'modules/delay-queues/main.tf',
    from: 'max_attempts  = -1',
    to: 'max_attempts  = 100',
    finds: /max_attempts must be -1/,
  },
  'an ack deadline that policy has not checked': {
    file: GUARANTEE,
    from: 'ack_deadline_seconds       = local.limits.ack_deadline_seconds',
    to: 'ack_deadline_seconds       = 60',
    finds: /ack_deadline_seconds must be what the policy has checked/,
  },
  'attempts that policy has not checked': {
    file: GUARANTEE,
    from: 'max_delivery_attempts = local.limits.max_delivery_attempts',
    to: 'max_delivery_attempts = 5',
    finds: /max_delivery_attempts must be what the policy has checked/,
  },
  'limits that differ between the modules': {
    file: 'modules/guarantee/variables.tf',
    from: 'optional(number, 90)',
    to: 'optional(number, 65)',
    finds: /the type of limits is not that of modules\/policy/,
  },
  'a queue that deletes tasks after some time': {
    file: 'modules/delay-queues/main.tf',
    from: 'max_attempts  = -1',
    to: 'max_attempts  = -1\n    max_retry_duration = "3600s"',
    finds: /max_retry_duration must not be set/,
  },
  'the same grant twice': {
    file: GUARANTEE,
    from: 'resource "google_pubsub_topic_iam_member" "dead_letters"',
    to: 'resource "google_pubsub_topic_iam_member" "again" {\n  project = var.project_id\n  topic   = var.target_topic\n  role    = "roles/pubsub.publisher"\n  member  = google_service_account.runtime.member\n}\n\nresource "google_pubsub_topic_iam_member" "dead_letters"',
    finds: /a grant that src\/grants\.ts does not have: pubsub_topic \(target_topic\)/,
  },
  'a grant that a new function has lost': {
    file: GUARANTEE,
    from: '    replace_triggered_by = [google_cloudfunctions2_function.function.id]\n',
    to: '',
    finds: /replace_triggered_by must name the function/,
  },
  'a secret that is gone before there is a new one': {
    file: 'modules/store-redis/main.tf',
    from: 'create_before_destroy = true',
    to: 'create_before_destroy = false',
    finds: /create_before_destroy must be true/,
  },
  'a Redis that evicts': {
    file: 'modules/store-redis/main.tf',
    from: '"noeviction"',
    to: '"allkeys-lru"',
    finds: /maxmemory-policy must be noeviction/,
  },
};

describe('a planted defect is found:', () => {
  let folder: string;
  let modules: ReadonlyMap<string, Module>;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'planted-'));
    modules = await readModules(TERRAFORM_FOLDER);
  });
  after(async () => rm(folder, { recursive: true }));

  for (const [title, { file, from, to, finds }] of Object.entries(PLANTED)) {
    test(title, async () => {
      const name = dirname(file);
      const copy = join(folder, title.replaceAll(' ', '-'));
      await cp(join(TERRAFORM_FOLDER, name), copy, { recursive: true });
      const text = await readFile(join(TERRAFORM_FOLDER, file), 'utf8');
      assert.ok(text.includes(from), `${file} does not have what is to be replaced`);
      await writeFile(
        join(copy, basename(file)),
        text.replace(from, () => to),
      );
      const changed = { ...(await readModule(copy, name)), folder: join(TERRAFORM_FOLDER, name) };
      assert.match(allChecks(new Map([...modules, [name, changed]])).join('\n'), finds);
    });
  }
});
