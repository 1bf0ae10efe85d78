/**
 * What the examples plan, as Terraform itself says it against the stand-in provider; kept in `plans/` with a digest of
 * the sources, so that what does not need Terraform can be compared with it where there is none.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json, JsonObject } from './module.ts';
import { PROJECT_NUMBER } from './stand-in/outputs.ts';
import { type Run, type Terraform, TERRAFORM_FOLDER } from './terraform.ts';

export type Planned = Readonly<{ address: string; type: string; values: JsonObject }>;
/** `sources`: digest of all `.tf` and `.tftpl` files that it was made from. */
export type Plan = Readonly<{ sources: string; resources: readonly Planned[] }>;

const PROJECT = 'demo-project';
const EXISTING = {
  source_topic: 'reminders',
  target_topic: 'reminders-due',
  bucket: 'sources-bucket',
  build_service_account: 'projects/demo-project/serviceAccounts/builder@demo-project.iam.gserviceaccount.com',
  republisher_image: 'europe-west1-docker.pkg.dev/demo-project/images/republisher',
};

/** The plans that are made, by name: an example and its variables. */
export const CASES: Readonly<
  Record<string, Readonly<{ example: string; variables: Readonly<Record<string, string>> }>>
> = {
  minimal: { example: 'minimal', variables: { project_number: PROJECT_NUMBER } },
  complete: {
    example: 'complete',
    variables: { project_number: PROJECT_NUMBER, app_engine_service: 'republisher' },
  },
  'complete-redis': {
    example: 'complete',
    variables: {
      redis_network: '{network="default",subnetwork="default"}',
      app_engine_location: 'europe-west',
      app_engine_service: 'default',
    },
  },
  redis: {
    example: 'complete',
    variables: {
      project_number: PROJECT_NUMBER,
      redis_network: '{network="default",subnetwork="default"}',
      app_engine_location: 'europe-west',
      app_engine_service: 'default',
      outbox: '{orders-once=["reminders"],ledger-fifo=["orders"]}',
      saga: '{topics=["stock","couriers"]}',
      outbox_triggers: '["ledger-fifo"]',
    },
  },
  'existing-project': { example: 'existing-project', variables: EXISTING },
};

/** Those that are kept, to be judged, and what `deploy/gcloud.sh` is compared with. */
export const KEPT = ['complete', 'redis', 'existing-project'] as const;

export const planFile = (name: string): URL => new URL(`../plans/${name}.json`, import.meta.url);

/** Runs `init`, once for an example, and `plan`; the plan is written to `plan.out` in the example. */
export async function runPlan(
  { run, folder }: Terraform,
  name: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const { example, variables } = CASES[name] ?? { example: name, variables: {} };
  const directory = `examples/${example}`;
  if (!existsSync(join(folder, directory, '.terraform'))) {
    const init = await run(directory, 'init', '-backend=false', '-no-color', '-input=false');
    if (init.code !== 0) return init;
  }
  const given = Object.entries({
    project_id: PROJECT,
    project_number: PROJECT_NUMBER,
    labels: '{team="a-team"}',
    ...variables,
    ...more,
  }).map(([key, value]) => `-var=${key}=${value}`);
  return run(directory, 'plan', '-no-color', '-input=false', '-lock=false', '-out=plan.out', ...given);
}

/** Rejects with Terraform's own words where it does not plan. */
export async function plan(
  terraform: Terraform,
  name: string,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly Planned[]> {
  const planned = await runPlan(terraform, name, more);
  if (planned.code !== 0) throw new Error(planned.output);
  const shown = await terraform.run(
    `examples/${CASES[name]?.example ?? name}`,
    'show',
    '-json',
    '-no-color',
    'plan.out',
  );
  if (shown.code !== 0) throw new Error(shown.output);
  const { resource_changes: changes } = JSON.parse(shown.output) as {
    resource_changes: { address: string; type: string; mode: string; change: { after: JsonObject } }[];
  };
  return changes
    .filter(({ mode }) => mode === 'managed')
    .map(({ address, type, change }) => ({ address, type, values: pruned(change.after) as JsonObject }))
    .toSorted((a, b) => (a.address < b.address ? -1 : 1));
}

/** Without what is not set and what the stand-in made up. */
function pruned(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => pruned(item));
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value)
    .filter(
      ([name, inner]) => inner !== null && !(Array.isArray(inner) && inner.length === 0) && name !== 'id',
    )
    .filter(([, inner]) => !(typeof inner === 'string' && inner.startsWith('made-up-')))
    .map(([name, inner]) => [name, pruned(inner)] as const);
  return Object.fromEntries(kept);
}

/** Of the texts of all modules and examples. */
export async function digestOfSources(folder: string = TERRAFORM_FOLDER): Promise<string> {
  const hash = createHash('sha256');
  for (const part of ['examples', 'modules']) {
    const files = (await readdir(join(folder, part), { recursive: true }))
      .filter((file) => /\.(tf|tftpl)$/.test(file) && !file.includes('.terraform'))
      .toSorted();
    for (const file of files)
      hash
        .update(`${part}/${file}\0`)
        .update(await readFile(join(folder, part, file)))
        .update('\0');
  }
  return hash.digest('hex');
}

export const readPlan = async (name: string): Promise<Plan> =>
  JSON.parse(await readFile(planFile(name), 'utf8')) as Plan;
