/**
 * What a plan would lose: messages that wait, and what cannot be made again. Reads what `terraform show -json` prints.
 */

type Change = Readonly<{
  address: string;
  type: string;
  change: Readonly<{
    actions: readonly string[];
    before: Readonly<Record<string, unknown>> | null;
    replace_paths?: readonly (readonly unknown[])[];
  }>;
}>;
export type ShownPlan = Readonly<{ resource_changes?: readonly Change[] }>;

/** By type: what goes with it, and what to do in its place. */
const HOLDS: Readonly<Record<string, string>> = {
  google_cloud_tasks_queue:
    'its tasks are messages that wait. Add another queue, move this one to draining_queues, and delete it when it is empty',
  google_pubsub_subscription:
    'it holds what is not acknowledged yet. Make another beside it, let this one run out, and remove it then',
  google_pubsub_topic: 'what is published to it from now on is refused, and its subscriptions get nothing',
  google_firestore_database: 'claims, streams, schedules, payloads and the outbox are in it',
  google_redis_instance: 'its claims are lost: what comes again is processed again',
  google_service_account:
    'its grants go with it, and tasks that were made with it are refused until their queue deletes them',
};

/** A line for each resource that a plan destroys or replaces, and that something would be lost with. */
export function lost({ resource_changes: changes = [] }: ShownPlan): readonly string[] {
  return changes.flatMap(({ address, type, change: { actions, before, replace_paths: paths = [] } }) => {
    const what = HOLDS[type];
    if (what === undefined || !actions.includes('delete')) return [];
    const name = [before?.['name'], before?.['account_id']].find((one) => typeof one === 'string') ?? address;
    const because = paths.map((path) => path.join('.')).join(', ');
    const how = actions.includes('create')
      ? `replaced${because === '' ? '' : ` for ${because}`}`
      : 'destroyed';
    return [`${address} (${name}) is ${how}: ${what}`];
  });
}
