/** The deployment that is broken off, and where. */
import assert from 'node:assert/strict';

export const EVERYTHING =
  '--redis net:sub --function orders-once:dedup:orders:orders-unique --function pay:pipeline:payments:payments-ready --outbox pay:orders --enable-services --app-engine-service later'.split(
    ' ',
  );
/** What `gcloud app create` leaves: its API and the app. */
export const WITH_APP = ['api appengine', 'app'];

/** A command without what it is about: `pubsub topics add-iam-policy-binding`. */
const verbOf = (command: string): string => command.replace(/ (--|[\w.@*-]+ --).*/, '');

/** Of the kinds, where the search is not deep: a handful that are far apart. */
const EVERY_SO_MANY = 6;

/**
 * The first command of each kind, with its number from 1, or some of them where the search is not deep; with TEST_EVERY=1
 * each command, which takes minutes. What another of the same kind leaves behind differs in names alone.
 */
export function kindsOf(
  commands: readonly string[],
  isDeep: boolean,
): readonly (readonly [number: number, command: string])[] {
  const verbs = commands.map(verbOf);
  const found = commands.flatMap((command, index) =>
    process.env['TEST_EVERY'] === '1' || verbs.indexOf(verbs[index] ?? '') === index
      ? [[index + 1, command] as const]
      : [],
  );
  assert.ok(found.length >= 10, `${found.length} kinds`);
  return isDeep ? found : found.filter((_, index) => index % EVERY_SO_MANY === 0);
}
