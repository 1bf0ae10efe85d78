/** The version of a document as a text, and writes that it may refuse. */
import { type Precondition, Timestamp, type WriteResult } from '@google-cloud/firestore';
import { type Calls, isRefused } from './calls.ts';

/** An update time: seconds, then nine digits of nanoseconds. */
export const toVersion = (time: Timestamp): string =>
  `${time.seconds}${String(time.nanoseconds).padStart(9, '0')}`;
export const toTime = (version: string): Timestamp =>
  new Timestamp(Number(version.slice(0, -9)), Number(version.slice(-9)));
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
