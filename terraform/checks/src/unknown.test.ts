/**
 * The examples as Terraform plans them where nothing exists yet: valid, without anything that would have to be known
 * before, and as their own tests want them.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CASES, runPlan } from './plans.ts';
import { terraform } from './terraform.ts';

const there = await terraform('unknown');

// A suite that is skipped is not counted; a test is.
test('Terraform is there', { skip: there === undefined && 'terraform is not on the path' }, () => {});

describe('with Terraform:', { skip: there === undefined }, () => {
  after(async () => there?.close());

  for (const name of ['minimal', 'complete-redis', 'existing-project']) {
    test(`${name} is valid, and planned although nothing is known of what does not exist yet`, async () => {
      const planned = await runPlan(there!, name);
      assert.equal(planned.code, 0, planned.output);
      const { code, output } = await there!.run(`examples/${CASES[name]!.example}`, 'validate', '-no-color');
      assert.equal(code, 0, output);
    });
  }

  test('the tests of the examples, which a mock of the provider is enough for, pass', async () => {
    for (const example of new Set(Object.values(CASES).map((one) => one.example))) {
      const init = await there!.run(`examples/${example}`, 'init', '-backend=false', '-no-color');
      assert.equal(init.code, 0, init.output);
      const { code, output } = await there!.run(`examples/${example}`, 'test', '-no-color');
      assert.equal(code, 0, output);
      assert.match(output, /1 passed, 0 failed/);
    }
  });
});
