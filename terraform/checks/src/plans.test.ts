/**
 * The modules as Terraform itself sees them, where it is there: formatted, and planned as what is kept says.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { digestOfSources, KEPT, plan, readPlan } from './plans.ts';
import { terraform } from './terraform.ts';

const there = await terraform();

test('the kept plans were made from these sources', async () => {
  const sources = await digestOfSources();
  for (const name of KEPT) {
    assert.equal((await readPlan(name)).sources, sources, 'run npm run plans -w terraform/checks');
  }
});

test('every planned deadline leaves room for the one below it', async () => {
  const planned = (await readPlan('complete')).resources;
  const functions = planned.filter(({ type }) => type === 'google_cloudfunctions2_function');
  assert.equal(functions.length, 4);
  for (const { address, values } of functions) {
    const text = JSON.stringify(values);
    const pushed = address.replace(
      'google_cloudfunctions2_function.function',
      'google_pubsub_subscription.push',
    );
    const handler = Number(/"HANDLER_TIMEOUT":"(\d+)s"/.exec(text)?.[1]);
    const limit = Number(/"timeout_seconds":(\d+)/.exec(text)?.[1]);
    const ack = Number(planned.find((one) => one.address === pushed)?.values['ack_deadline_seconds']);
    assert.ok(handler < limit && limit < ack && ack <= 600, `${address}: ${handler} ${limit} ${ack}`);
  }
});

// A suite that is skipped is not counted; a test is.
test('Terraform is there', { skip: there === undefined && 'terraform is not on the path' }, () => {});

describe('with Terraform:', { skip: there === undefined }, () => {
  after(async () => there?.close());

  test('every file is formatted', async () => {
    const { code, output } = await there!.run('.', 'fmt', '-check', '-diff', '-recursive');
    assert.equal(code, 0, output);
  });

  test('the policy is valid, and its own tests pass', async () => {
    for (const args of [['init', '-backend=false'], ['validate'], ['test']] as const) {
      const { code, output } = await there!.run('modules/policy', ...args, '-no-color');
      assert.equal(code, 0, output);
    }
  });

  for (const name of KEPT) {
    test(`${name} is planned as it is kept`, async () => {
      const { resources } = await readPlan(name);
      assert.deepEqual(await plan(there!, name), resources, 'run npm run plans -w terraform/checks');
    });
  }
});
