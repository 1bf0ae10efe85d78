/**
 * What every deployment must keep to, judged on the text of the modules alone: which account has which role, that
 * nothing is public, that nothing expires or stops trying by itself, and that deadlines come from the one place where they are checked.
 */
import { GRANTS } from './grants.ts';
import { blocksOf, type JsonObject, type Module, type Resource, textOf } from './module.ts';

/** A line for each problem. */
export function checkPolicy(module: Module): readonly string[] {
  const problems = [
    ...grants(module),
    ...module.resources.flatMap((resource) =>
      (RULES[resource.type] ?? [])
        .flatMap((rule) => [...rule(resource, module)])
        .map((text) => `${resource.type}.${resource.name}: ${text}`),
    ),
  ];
  return problems.map((text) => `${module.name}: ${text}`);
}

type Rule = (resource: Resource, module: Module) => Iterable<string>;

const RULES: Readonly<Record<string, readonly Rule[]>> = {
  google_pubsub_subscription: [expires, retries, pushes],
  google_cloud_tasks_queue: [
    ({ body }, { name }) =>
      unless(
        // A wake-up that is lost costs time alone: the sweep finds the same stream.
        name === 'modules/wake-queue' || one(body, 'retry_config')['max_attempts'] === -1,
        'max_attempts must be -1: after a last attempt the message is gone',
      ),
    ({ body }) =>
      unless(
        !('max_retry_duration' in one(body, 'retry_config')),
        'a limit of time is a limit of attempts: max_retry_duration must not be set',
      ),
  ],
  google_cloudfunctions2_function: [
    ({ body }) =>
      unless(
        blocksOf(body, 'event_trigger').length === 0,
        'an event trigger has no dead letters and no deadline of its own',
      ),
    ({ body }) =>
      unless('service_account_email' in one(body, 'service_config'), 'it must run as an account of its own'),
    ({ body }) =>
      unless(
        one(body, 'service_config')['timeout_seconds'] === '${local.limits.function_timeout_seconds}',
        'timeout_seconds must be what the policy has checked',
      ),
    ({ body }) =>
      unless(
        'max_instance_request_concurrency' in one(body, 'service_config'),
        'the concurrency must be set',
      ),
  ],
  google_cloud_run_v2_service: [
    ({ body }) => unless('service_account' in one(body, 'template'), 'it must run as an account of its own'),
    ({ body }) =>
      unless(body['ingress'] === 'INGRESS_TRAFFIC_INTERNAL_ONLY', 'it must not be reached from outside'),
  ],
  google_redis_instance: [
    ({ body }) => unless(body['auth_enabled'] === true, 'AUTH must be on'),
    ({ body }) => unless(body['transit_encryption_mode'] === 'SERVER_AUTHENTICATION', 'TLS must be on'),
    ({ body }) =>
      unless(
        (body['redis_configs'] as JsonObject)['maxmemory-policy'] === 'noeviction',
        'maxmemory-policy must be noeviction',
      ),
  ],
  google_secret_manager_secret_version: [
    ({ body }) =>
      unless(
        one(body, 'lifecycle')['create_before_destroy'] === true,
        'create_before_destroy must be true: an instance that starts meanwhile would find no latest version',
      ),
  ],
  google_cloud_run_service_iam_member: [
    ({ body }) =>
      unless(
        'replace_triggered_by' in one(body, 'lifecycle'),
        'a function that is made anew has lost it: replace_triggered_by must name the function',
      ),
  ],
  google_storage_bucket: [
    ({ body }) => unless(body['public_access_prevention'] === 'enforced', 'public access must be prevented'),
  ],
  google_cloud_scheduler_job: [
    ({ body }) =>
      unless(
        'audience' in one(one(body, 'http_target'), 'oidc_token'),
        'it must send a token with an audience',
      ),
  ],
};

function* expires({ body }: Resource): Generator<string> {
  if (one(body, 'expiration_policy')['ttl'] !== '') yield 'expiration_policy must be never (ttl = "")';
}

function* retries({ body }: Resource): Generator<string> {
  if (blocksOf(body, 'push_config').length > 0 && blocksOf(body, 'retry_policy').length === 0) {
    yield 'without a retry_policy what is refused comes again at once';
  }
}

function* pushes({ body }: Resource, module: Module): Generator<string> {
  if (blocksOf(body, 'push_config').length === 0) return;
  const token = one(one(body, 'push_config'), 'oidc_token');
  if (!('service_account_email' in token) || !('audience' in token))
    yield 'it must push with a token for an audience';
  for (const [of, name, expected] of [
    [body, 'ack_deadline_seconds', '${local.limits.ack_deadline_seconds}'],
    [body, 'message_retention_duration', '${module.policy.retry.message_retention}'],
    [one(body, 'dead_letter_policy'), 'max_delivery_attempts', '${local.limits.max_delivery_attempts}'],
    [one(body, 'retry_policy'), 'minimum_backoff', '${module.policy.retry.minimum_backoff}'],
    [one(body, 'retry_policy'), 'maximum_backoff', '${module.policy.retry.maximum_backoff}'],
  ] as const) {
    if (name in of && of[name] !== expected) yield `${name} must be what the policy has checked`;
  }
  const dead = one(body, 'dead_letter_policy')['dead_letter_topic'];
  if (dead === undefined) yield 'it must have a dead_letter_policy';
  else {
    const kept = module.resources.some(
      ({ type, body: other }) => type === 'google_pubsub_subscription' && other['topic'] === dead,
    );
    if (!kept) yield 'its dead-letter topic has no subscription, and would keep nothing';
  }
}

const one = (body: JsonObject, name: string): JsonObject => blocksOf(body, name)[0] ?? {};

const unless = (holds: boolean, text: string): readonly string[] => (holds ? [] : [text]);

function grants(module: Module): readonly string[] {
  const found = module.resources.filter(
    ({ type }) => /_iam_/.test(type) && type !== 'google_project_iam_custom_role',
  );
  const problems = found.flatMap(({ type, name, body }) => [
    ...unless(
      type.endsWith('_iam_member'),
      `${type}.${name}: only grants of one right to one member leave others' alone`,
    ),
    ...unless(!/allUsers|allAuthenticatedUsers/.test(JSON.stringify(body)), `${type}.${name}: is public`),
  ]);
  const written = found.map(grantOf).toSorted();
  const expected = (GRANTS[module.name] ?? []).toSorted();
  return [
    ...problems,
    ...without(expected, written).map((grant) => `the grant is missing: ${grant}`),
    ...without(written, expected).map((grant) => `a grant that src/grants.ts does not have: ${grant}`),
  ];
}

/** Each taken away once: two grants that read the same are two. */
function without(grants: readonly string[], others: readonly string[]): readonly string[] {
  const left = [...others];
  return grants.filter((grant) => {
    const at = left.indexOf(grant);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

function grantOf({ type, body }: Resource): string {
  const kind = type.replace(/^google_(.*)_iam_\w+$/, '$1');
  const named = ['topic', 'subscription', 'service_account_id', 'name'];
  const on = textOf(named.map((name) => body[name]).find((value) => value !== undefined));
  const what = /\.(each|target_topic|wake_queue|dead_letters|push|caller)\b|\b(each)\.value/.exec(on);
  // Of several the list says which.
  const list = /(?:local|var)\.(\w+)/.exec(textOf(body['for_each']))?.[1] ?? 'each';
  const each = /toset\((\[[^\]]*\])\)/.exec(textOf(body['for_each']))?.[1];
  const role =
    body['role'] === '${each.value}'
      ? `{${(JSON.parse(each ?? '[]') as string[]).join(', ')}}`
      : textOf(body['role']);
  const member =
    /(?:google_service_account\.|local\.)(\w+)/.exec(textOf(body['member']))?.[1] ?? textOf(body['member']);
  const where = what === null ? '' : ` (${what[1] ?? `each of ${list}`})`;
  return `${kind}${where}: ${role} to ${member}${blocksOf(body, 'condition').length > 0 ? ', under a condition' : ''}`;
}
