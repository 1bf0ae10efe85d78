/**
 * Every await of de-duplication that waits for the store, the clock or the handler, read from the sources. All other
 * awaits wait for one of these.
 */
import { callerIn, matchesIn } from '../engine/places.ts';
import type { When } from '../engine/process.ts';

/** A place is identified by `when` and `site`: `file.ts:line`. */
export type Place = Readonly<{
  when: When;
  site: string;
  /** The file, the function and the call. */
  name: string;
  call: Call;
}>;

export type Call = 'sleep' | 'await next' | `documents.${'create' | 'read' | 'update' | 'remove'}`;

const FOLDER = new URL('../../../shared/src/dedup/', import.meta.url);
const FILES = ['claiming.ts', 'shared-polls.ts', 'run-claimed.ts', 'lease.ts', 'document-claims.ts'];
const CALL = /\bsleep(?=\(clock)|\bdocuments\.(?:create|read|update|remove)(?=\()|await next(?=\()/g;
const FUNCTION = /(?:function|const) (\w+) ?(?:<\w+>)?(?:\(|= async)/;

export function everyPlace(): readonly Place[] {
  const names = new Set<string>();
  return matchesIn(FOLDER, FILES, CALL).flatMap(({ file, line, match, text, above }): Place[] => {
    const call = match[0] as Call;
    const room = [...above, text].findLast((one) => FUNCTION.test(one)) ?? '';
    const first = `${file} ${FUNCTION.exec(room)?.[1] ?? ''}: ${call}`;
    const name = names.has(first) ? `${first}, again` : first;
    names.add(name);
    const before: Place = { when: 'before', site: `${file}:${line}`, name, call };
    return call === 'sleep' ? [before] : [before, { ...before, when: 'after' }];
  });
}

const SOURCE = /\/shared\/src\/dedup\/([\w-]+\.ts)$/;
/** From the port to the line that calls it: to look at more frames costs more. */
const FRAMES: Readonly<Partial<Record<Call, number>>> = { sleep: 8, 'await next': 12 };
const FRAMES_OF_DOCUMENTS = 6;

/** The line that makes this call now, whatever of other folders was called on the way. */
export const siteOf = (call: Call): string => callerIn(SOURCE, FRAMES[call] ?? FRAMES_OF_DOCUMENTS) ?? call;
