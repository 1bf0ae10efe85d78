/**
 * Times of documents: when something is due, and the update time as the version of a document, with writes that may be
 * refused for it.
 */
import { type Precondition, Timestamp, type WriteResult } from '@google-cloud/firestore';
import type { Calls } from './calls.ts';
import { isRefused } from './errors.ts';

/** Rounded up, so that nothing is due before its time. */
export const timestampAt = (milliseconds: number): Timestamp => Timestamp.fromMillis(Math.ceil(milliseconds));

/** An update time as a text: seconds, then nine digits of nanoseconds. */
export const toVersion = (time: Timestamp): string =>
  `${time.seconds}${String(time.nanoseconds).padStart(9, '0')}`;
export const toTime = (version: string): Timestamp =>
  new Timestamp(Number(version.slice(0, -9)), Number(version.slice(-9)));
/** That the document has this version still. */
export const at = (version: string): Precondition => ({ lastUpdateTime: toTime(version) });

/** The document's new version; undefined when the write was refused. */
export const refusable =
  ({ call }: Calls) =>
  async (name: string, write: () => Promise<WriteResult | undefined>): Promise<string | undefined> => {
    try {
      const result = await call(name, write);
      return result === undefined ? undefined : toVersion(result.writeTime);
    } catch (error) {
      if (isRefused(error)) return undefined;
      throw error;
    }
  };
