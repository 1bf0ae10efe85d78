/**
 * What the fields of a key and of a held message must be. A document that somebody else wrote, or wrote to, is refused
 * as a whole: a pointer that is no number would make every comparison false, and nothing would say so.
 */
import { Timestamp } from '@google-cloud/firestore';

type Check = (value: unknown) => boolean;
export type Fields = Readonly<Record<string, Check>>;

const isWhole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === 'string';
const isTime: Check = (value) => value instanceof Timestamp;
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const has =
  (fields: Fields): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    wrongField(fields, value as Record<string, unknown>) === undefined;
const isRange = has({ from: isWhole, to: isWhole });

export const KEY_FIELDS: Fields = {
  last: isWhole,
  epoch: (value) => value === undefined || value === null || isText(value),
  owner: orNull(isText),
  leasedAt: orNull(isTime),
  leaseMs: isWhole,
  attempts: isWhole,
  nextTryAt: orNull(isTime),
  waitingSince: orNull(isTime),
  gapAt: orNull(isWhole),
  readyAt: orNull(isTime),
  // Absent in documents of format version 1.
  repairedAt: (value) => value === undefined || value === null || isTime(value),
  halted: (value) =>
    value === undefined || value === null || has({ at: isTime, code: isText, text: isText })(value),
  // `behind`: only where several run in a row.
  run: orNull(
    has({ number: isWhole, hash: isText, behind: (value) => value === undefined || isText(value) }),
  ),
  skipped: (value) => Array.isArray(value) && value.every(isRange),
  ring: isText,
  // Only where the stream began at its counter.
  opening: (value) => value === undefined || isWhole(value),
};

export const HELD_FIELDS: Fields = {
  number: isWhole,
  hash: isText,
  source: isText,
  message: (value) => value instanceof Uint8Array,
  // Only in format version 2.
  payload: (value) => value === undefined || has({ id: isText, bytes: isWhole, digest: isText })(value),
};

/** The first field that is not what it must be. */
export const wrongField = (fields: Fields, data: Readonly<Record<string, unknown>>): string | undefined =>
  Object.entries(fields).find(([name, isRight]) => !isRight(data[name]))?.[0];
