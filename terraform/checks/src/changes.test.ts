/**
 * Changes of what is deployed, against the state that an apply left: the same plan again changes nothing, and what would
 * lose messages is refused by Terraform and named by the check.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { lost, type ShownPlan } from './lost.ts';
import { readModules } from './module.ts';
import { KEPT, readPlan, runPlan } from './plans.ts';
import { loadSchema } from './schema.ts';
import { terraform, TERRAFORM_FOLDER } from './terraform.ts';

const there = await terraform();
const EXAMPLE = 'examples/complete';

// A suite that is skipped is not counted; a test is.
test('Terraform is there', { skip: there === undefined && 'terraform is not on the path' }, () => {});

const actionsOf = async (): Promise<readonly string[]> => {
  const { output } = await there!.run(EXAMPLE, 'show', '-json', '-no-color', 'plan.out');
  const { resource_changes: changes = [] } = JSON.parse(output) as ShownPlan;
  return changes
    .filter(({ change: { actions } }) => actions.join() !== 'no-op' && actions.join() !== 'read')
    .map(({ address, change: { actions } }) => `${actions.join('+')} ${address}`);
};

/** Terraform's own words for a plan that is refused, on one line. */
const refused = async (name: string, more: Readonly<Record<string, string>>): Promise<string> => {
  const { code, output } = await runPlan(there!, name, more);
  assert.equal(code, 1, output);
  return output.replaceAll(/\s*\n[│|]?\s*/g, ' ');
};

/** With a text of the modules or examples changed for a while. */
async function changed(
  file: string,
  from: string | RegExp,
  to: string,
  work: () => Promise<void>,
): Promise<void> {
  const path = join(there!.folder, file);
  const before = await readFile(path, 'utf8');
  const text = before.replace(from, to);
  assert.notEqual(text, before, `${String(from)} is not in ${file}`);
  await writeFile(path, text);
  try {
    await work();
  } finally {
    await writeFile(path, before);
  }
}

describe('with Terraform:', { skip: there === undefined }, () => {
  after(async () => there?.close());

  test('what was applied is planned again without a change', async () => {
    const planned = await runPlan(there!, 'complete');
    assert.equal(planned.code, 0, planned.output);
    const applied = await there!.run(EXAMPLE, 'apply', '-no-color', '-input=false', 'plan.out');
    assert.equal(applied.code, 0, applied.output);
    const again = await runPlan(there!, 'complete');
    assert.equal(again.code, 0, again.output);
    assert.deepEqual(await actionsOf(), []);
  });

  const QUEUE = /google_cloud_tasks_queue\.queues\["delay-b"\].*prevent_destroy/;
  const PUSH = /google_pubsub_subscription\.push.*prevent_destroy/;

  test('a queue that is left out is not deleted with what waits in it', async () => {
    assert.match(await refused('complete', { queues: '["delay-a"]' }), QUEUE);
  });

  test('a queue that drains stays, is sent nothing new, and is served', async () => {
    const drains = { queues: '["delay-a"]', draining_queues: '["delay-b"]' };
    const planned = await runPlan(there!, 'complete', drains);
    assert.equal(planned.code, 0, planned.output);
    const actions = await actionsOf();
    assert.deepEqual(
      actions.filter((line) => line.includes('google_cloud_tasks_queue.')),
      [],
    );
    const { output } = await there!.run(EXAMPLE, 'show', '-json', '-no-color', 'plan.out');
    assert.match(output, /"DELAY_QUEUES":"[^",]*delay-a","DRAINING_QUEUES":"[^",]*delay-b"/);
    assert.deepEqual(lost(JSON.parse(output) as ShownPlan), []);
  });

  test('a queue that drains and is sent messages is refused', async () => {
    assert.match(
      await refused('complete', { draining_queues: '["delay-a"]' }),
      /draining_queues must not have a key that queues has/,
    );
  });

  test('another suffix or region of the queues does not replace them', async () => {
    const file = `${EXAMPLE}/main.tf`;
    const location = '  location        = var.region\n';
    await changed(file, location, `${location}  name_suffix = "-2"\n`, async () => {
      assert.match(await refused('complete', {}), QUEUE);
    });
    await changed(file, location, '  location        = "us-east1"\n', async () => {
      assert.match(await refused('complete', {}), /google_cloud_tasks_queue\.queues.*prevent_destroy/);
    });
  });

  for (const [what, from, to] of [
    [
      'filter',
      '  function              = each.value.function\n',
      '  function = each.value.function\n  filter = "x"\n',
    ],
    ['source', 'source = "orders", target', 'source = "ledger", target'],
    ['name', 'reminders     = {', 'memories = {'],
  ] as const) {
    test(`another ${what} of a function does not replace its subscription`, async () => {
      await changed(`${EXAMPLE}/main.tf`, from, to, async () => {
        assert.match(await refused('complete', {}), PUSH);
      });
    });
  }

  test('without the protection, the check names what would be lost', async () => {
    await changed(
      'modules/delay-queues/main.tf',
      'prevent_destroy = true',
      'prevent_destroy = false',
      async () => {
        const planned = await runPlan(there!, 'complete', { queues: '["delay-a","delay-c"]' });
        assert.equal(planned.code, 0, planned.output);
        const { output } = await there!.run(EXAMPLE, 'show', '-json', '-no-color', 'plan.out');
        assert.deepEqual(
          lost(JSON.parse(output) as ShownPlan).map((line) => line.split(':')[0]),
          ['module.queues.google_cloud_tasks_queue.queues["delay-b"] (delay-b) is destroyed'],
        );
      },
    );
  });

  test('the service of App Engine stays where it is when the region of the app is left out', async () => {
    const first = await runPlan(there!, 'complete', {
      app_engine_location: 'europe-west',
      app_engine_service: 'default',
    });
    assert.equal(first.code, 0, first.output);
    const applied = await there!.run(EXAMPLE, 'apply', '-no-color', '-input=false', 'plan.out');
    assert.equal(applied.code, 0, applied.output);
    const later = await runPlan(there!, 'complete', { app_engine_service: 'default' });
    assert.equal(later.code, 0, later.output);
    const actions = await actionsOf();
    assert.deepEqual(
      actions.filter((line) => /REPUBLISHER|cloudfunctions2|split_traffic/.test(line)),
      [],
    );
    assert.match(
      await refused('complete', { app_engine_location: 'europe-west' }),
      /app_engine\.service must be default where create_application is true/,
    );
  });
});

test('everything that can have labels has them', async () => {
  const schema = loadSchema();
  for (const name of KEPT) {
    for (const { address, type, values } of (await readPlan(name)).resources) {
      const label = ['labels', 'user_labels'].find(
        (one) => one in (schema.resources[type]?.attributes ?? {}),
      );
      if (label !== undefined) assert.deepEqual(values[label], { team: 'a-team' }, address);
    }
  }
});

test('no module reads what is not known until something else is done', async () => {
  for (const module of (await readModules(TERRAFORM_FOLDER)).values())
    assert.deepEqual(
      module.resources.filter(({ kind }) => kind === 'data').map(({ type }) => `${module.name}: ${type}`),
      [],
    );
});
