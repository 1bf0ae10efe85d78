/**
 * `expirationPeriod` of a subscription in a seed: `never`, or how long it may lie unused, as in gcloud's
 * `--expiration-period` (https://cloud.google.com/sdk/gcloud/reference/pubsub/subscriptions/create). It becomes Google's
 * `expirationPolicy`; how short it may be is the server's business.
 */
import { type Options, type Path, type PlaceOf, SeedError } from './named.ts';

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
type Unit = keyof typeof UNIT_SECONDS;

/** The options with the policy in place of the period. Throws SeedError for a period that is none, or beside a policy. */
export function withExpirationPolicy(
  { expirationPeriod, ...options }: Options,
  path: Path,
  placeOf: PlaceOf,
): Options {
  // Null is an absent field, as everywhere in Google's JSON.
  if (expirationPeriod === undefined || expirationPeriod === null) return options;
  if (options['expirationPolicy'] !== undefined && options['expirationPolicy'] !== null) {
    throw new SeedError(
      placeOf(path),
      'expirationPeriod and expirationPolicy are both set; accepted: one of them',
    );
  }
  if (expirationPeriod === 'never') return { ...options, expirationPolicy: {} };
  const text = typeof expirationPeriod === 'string' ? expirationPeriod : '';
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count === undefined) {
    const accepted = 'never, or a whole number and a unit of s, m, h or d, for example 45d';
    const shown = JSON.stringify(expirationPeriod);
    throw new SeedError(
      placeOf([...path, 'expirationPeriod']),
      `${shown} is no period; accepted: ${accepted}`,
    );
  }
  return { ...options, expirationPolicy: { ttl: `${Number(count) * UNIT_SECONDS[unit as Unit]}s` } };
}
