/**
 * A zip of files that depends on their names and contents alone: sorted by name, one fixed time, one fixed mode, not
 * compressed (what a compressor makes differs between its versions and machines, and this is little to upload).
 */
import { type Zippable, zipSync } from 'fflate';

/** The first time a zip can hold. It holds local time: the same fields in every time zone. */
const EPOCH = (): Date => new Date(1980, 0, 1, 0, 0, 0);
/** Made on Unix: a plain file that its owner may write and every account may read. */
const UNIX = 3;
const MODE = 0o100644;

export function archive(files: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const entries: Zippable = {};
  for (const [name, content] of [...files].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    entries[name] = [content, { level: 0, mtime: EPOCH(), os: UNIX, attrs: (MODE << 16) >>> 0 }];
  }
  return zipSync(entries);
}
