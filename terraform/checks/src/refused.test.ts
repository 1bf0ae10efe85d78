/**
 * Bad input ends a plan, before anything is created, with a sentence that says what to set.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { at } from './facts/values.ts';
import { plan, runPlan } from './plans.ts';
import { terraform } from './terraform.ts';

const there = await terraform();

// A suite that is skipped is not counted; a test is.
test('Terraform is there', { skip: there === undefined && 'terraform is not on the path' }, () => {});

describe('with Terraform:', { skip: there === undefined }, () => {
  after(async () => there?.close());

  test('a misspelt argument is refused by Terraform too', async () => {
    const file = join(there!.folder, 'examples/minimal/main.tf');
    const text = await readFile(file, 'utf8');
    try {
      await writeFile(file, text.replace('name    = each.value', 'nam    = each.value'));
      const { code, output } = await runPlan(there!, 'minimal');
      assert.equal(code, 1);
      assert.match(output, /An argument named "nam" is not expected here/);
    } finally {
      await writeFile(file, text);
    }
  });

  test('every setting arrives where the function reads it', async () => {
    const file = join(there!.folder, 'examples/minimal/main.tf');
    const text = await readFile(file, 'utf8');
    const settings = `function = "fifo"
      order = { start = "counter", max_attempts = 5, on_poison = "skip", on_gap = "skip", gap_timeout_seconds = 120, on_unknown_stale = "ack", scope = "consumer" }
      outbox = { topics = ["orders", "orders-unique", "others"], shards = 32 }
      counter_scope = "shop"
      wake_queue = "projects/demo-project/locations/europe-west1/queues/wake"
      log_level = "debug"
      check_windows = false`;
    try {
      await writeFile(file, text.replace('function              = "dedup"', settings));
      const resources = await plan(there!, 'minimal');
      const [own] = resources.filter(({ type }) => type === 'google_cloudfunctions2_function');
      const environment = at(own?.values, 'service_config', 'environment_variables');
      const functions = new URL('../../../functions/src/config.ts', import.meta.url).href;
      const { readConfig } = (await import(functions)) as {
        readConfig: (environment: unknown, target: string) => Record<string, unknown>;
      };
      const { order, outbox, wake, checkWindows, debug } = readConfig(environment, 'fifo');
      assert.deepEqual(order, {
        lease: '60s',
        start: 'counter',
        maxAttempts: 5,
        onPoison: 'skip',
        onGap: 'skip',
        gap: { timeout: '120s' },
        onUnknownStale: 'ack',
        scope: 'consumer',
      });
      assert.deepEqual(
        [outbox, checkWindows, debug],
        [{ isOn: true, shards: 32, counterScope: 'shop' }, false, true],
      );
      assert.deepEqual(wake, {
        queue: 'projects/demo-project/locations/europe-west1/queues/wake',
        url: 'https://orders-once-123456789012.europe-west1.run.app',
        serviceAccount: 'orders-once-push@demo-project.iam.gserviceaccount.com',
      });
      // The target has its grant anyway, and the source is among them without being named.
      const granted = resources
        .filter(({ address }) => address.includes('google_pubsub_topic_iam_member.outbox'))
        .map(({ values }) => values['topic']);
      assert.deepEqual(granted, ['orders', 'others']);
    } finally {
      await writeFile(file, text);
    }
  });

  const REFUSED: Readonly<Record<string, readonly [from: string, to: string, says: RegExp]>> = {
    'a deadline mismatch': [
      'function              = "dedup"',
      'function = "dedup"\n  limits = { ack_deadline_seconds = 65 }',
      /ack_deadline_seconds must be above limits\.function_timeout_seconds/,
    ],
    'a package that is not there': ['functions.zip"', 'function.zip"', /run npm run package/],
    'a delay without queues': [
      '"dedup"',
      '"delay"',
      /delay must be set for the functions delay, pipeline and saga/,
    ],
    'a variable that the module sets itself': [
      'function              = "dedup"',
      'function = "dedup"\n  environment = { HANDLER_TIMEOUT = "600s" }',
      /environment has a variable that the module or the platform sets itself/,
    ],
    'a misspelt variable of the toolkit': [
      'function              = "dedup"',
      'function = "dedup"\n  environment = { ORDER_POISSON = "skip" }',
      /set dedup, order, limits/,
    ],
    'a secret in a variable': [
      'function              = "dedup"',
      'function = "dedup"\n  environment = { API_KEY = "x" }',
      /a secret does not belong in it/,
    ],
    'a policy that is none': [
      'function              = "dedup"',
      'function = "dedup"\n  dedup = { on_conflict = "drop" }',
      /dedup\.on_conflict must be deadLetter, ack or process/,
    ],
    'a wake-up queue by its ID': [
      'function              = "dedup"',
      'function = "fifo"\n  wake_queue = "wake"',
      /wake_queue must be a full name/,
    ],
    'a zone instead of a region': [
      'region                = var.region',
      'region = "europe-west1-b"',
      /region must be a region such as europe-west1/,
    ],
    'a builder by its e-mail address': [
      'build_service_account = module.project.build_account',
      'build_service_account = "builder@demo-project.iam.gserviceaccount.com"',
      /build_service_account must be a full name/,
    ],
    'Redis in another region': [
      'function              = "dedup"',
      'function = "dedup"\n  redis = { url_secret = "url", region = "us-central1" }\n  network = { network = "n", subnetwork = "s" }',
      /redis\.region must be region/,
    ],
    'Redis without a network': [
      'function              = "dedup"',
      'function = "dedup"\n  redis = { url_secret = "url" }',
      /network must be set together with redis/,
    ],
  };
  for (const [title, [from, to, says]] of Object.entries(REFUSED)) {
    test(`${title} ends the plan with a reason`, async () => {
      const file = join(there!.folder, 'examples/minimal/main.tf');
      const text = await readFile(file, 'utf8');
      assert.ok(text.includes(from));
      try {
        await writeFile(file, text.replace(from, to));
        const { code, output } = await runPlan(there!, 'minimal');
        assert.equal(code, 1, output);
        assert.match(output.replaceAll(/\s*\n[│|]?\s*/g, ' '), says);
      } finally {
        await writeFile(file, text);
      }
    });
  }
});
