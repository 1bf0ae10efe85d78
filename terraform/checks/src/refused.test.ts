/**
 * Bad input ends a plan, before anything is created, with a sentence that says what to set.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runPlan } from './plans.ts';
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
      /delay must be set for the functions delay and pipeline/,
    ],
    'a variable that the module sets itself': [
      'function              = "dedup"',
      'function = "dedup"\n  environment = { HANDLER_TIMEOUT = "600s" }',
      /environment has a variable that the module sets itself/,
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
