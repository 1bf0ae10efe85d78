/**
 * What Google would answer: the computed attributes of a planned resource. Either made up from its arguments alone, so
 * that a plan is whole and the same every time; or unknown until it exists, as the real provider has it, so that what
 * may not depend on them shows.
 */
import type { Block, ValueType } from '../schema.ts';
import { UNKNOWN, type Value, type ValueMap } from './msgpack.ts';

export const PROJECT_NUMBER = '123456789012';

/** `planned` with every computed attribute that is not set unknown. */
export function withUnknowns(block: Block, planned: ValueMap): ValueMap {
  return filledBlock(block, planned, () => UNKNOWN);
}

/** `planned` with every computed attribute that is not set made up. */
export function withOutputs(type: string, block: Block, planned: ValueMap): ValueMap {
  const text = (name: string): string => {
    const value = planned[name];
    return typeof value === 'string' ? value : '';
  };
  const project = text('project') || text('project_id');
  const account = `${text('account_id')}@${project}.iam.gserviceaccount.com`;
  const known: Readonly<Record<string, Readonly<Record<string, Value>>>> = {
    google_service_account: {
      email: account,
      member: `serviceAccount:${account}`,
      name: `projects/${project}/serviceAccounts/${account}`,
      id: `projects/${project}/serviceAccounts/${account}`,
    },
    google_project_iam_custom_role: {
      name: `projects/${project}/roles/${text('role_id')}`,
      id: `projects/${project}/roles/${text('role_id')}`,
    },
    google_project: { number: PROJECT_NUMBER, id: `projects/${project}` },
    google_pubsub_topic: { id: `projects/${project}/topics/${text('name')}` },
    google_pubsub_subscription: { id: `projects/${project}/subscriptions/${text('name')}` },
    google_secret_manager_secret: { id: `projects/${project}/secrets/${text('secret_id')}` },
    google_redis_instance: { host: '10.0.0.3', port: 6378, auth_string: 'auth-string' },
  };
  const own = known[type] ?? {};
  const filled = filledBlock(
    block,
    planned,
    (name, of, isTop) => (isTop ? own[name] : undefined) ?? madeUp(name, of),
  );
  if (type !== 'google_cloudfunctions2_function') return filled;
  const [service] = Array.isArray(filled['service_config']) ? filled['service_config'] : [];
  const uri = `https://${text('name')}-${PROJECT_NUMBER}.${text('location')}.run.app`;
  return { ...filled, service_config: [{ ...(service as ValueMap), uri }] };
}

type Fill = (name: string, type: ValueType, isTop: boolean) => Value;

function filledBlock(block: Block, planned: ValueMap, fill: Fill, isTop = true): ValueMap {
  const filled: Record<string, Value> = { ...planned };
  for (const [name, value] of Object.entries(planned)) {
    const nested = block.blocks[name];
    if (nested === undefined || !Array.isArray(value)) continue;
    filled[name] = value.map((item: Value) => filledBlock(nested.block, item as ValueMap, fill, false));
  }
  for (const [name, { type, use }] of Object.entries(block.attributes)) {
    const isOutput = use === 'computed' || (name === 'id' && use === 'optional');
    if (isOutput && (filled[name] ?? null) === null) filled[name] = fill(name, type, isTop);
  }
  return filled;
}

function madeUp(name: string, type: ValueType): Value {
  if (type === 'number') return 0;
  if (type === 'bool') return false;
  if (typeof type === 'string') return `made-up-${name}`;
  const [kind, of] = type;
  if (kind === 'map') return {};
  if (kind === 'object') {
    return Object.fromEntries(Object.entries(of).map(([field, inner]) => [field, madeUp(field, inner)]));
  }
  return [madeUp(name, of)];
}
