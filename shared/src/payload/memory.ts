/**
 * The payload store in memory, for tests of stages and handlers: it keeps to what the port promises, on the clock that
 * it is given. Everything is gone with the process.
 */
import { type Clock, systemClock } from '../clock.ts';
import { PermanentError, storeUnavailable } from '../errors.ts';
import { hashOf } from '../hash.ts';
import {
  GRACE_MS,
  KEEP_MS,
  keepUntil,
  payloadRef,
  type PayloadStore,
  REPEAT_MARGIN_MS,
} from './payload-store.ts';
import { checkOptions, clock as aClock } from '../options.ts';

export type MemoryPayloads = PayloadStore &
  Readonly<{
    /** Contents that are kept, marked ones included. */
    stored(): number;
    /** Of those contents. */
    storedBytes(): number;
    /** Calls of every method but `sweep`, those that failed included. */
    calls(): number;
    /** What the n-th call (from 1) does instead of answering. */
    failOn(call: number, how: 'refused' | 'reply lost'): void;
  }>;

type Kept = Readonly<{ content?: Buffer; contentUntil: number; until: number; isDone: boolean }>;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const store = memoryPayloads({ clock: virtualClock() });
 */
export function memoryPayloads(options: Readonly<{ clock?: Clock }> = {}): MemoryPayloads {
  checkOptions<{ clock: Clock }>(options, { clock: aClock });
  const { clock = systemClock() } = options;
  const kept = new Map<string, Kept>();
  const failures = new Map<number, 'refused' | 'reply lost'>();
  let calls = 0;

  const call = <Value>(work: () => Value): Value => {
    calls += 1;
    const failure = failures.get(calls);
    const lost = (): Error => storeUnavailable(`call ${calls} of the payload store: ${failure}`);
    if (failure === 'refused') throw lost();
    const value = work();
    if (failure === 'reply lost') throw lost();
    return value;
  };

  return {
    async put(owner, content, neededAtMs) {
      return call(() => {
        const ref = payloadRef(owner, content);
        const asked = keepUntil(neededAtMs, clock.now());
        const found = kept.get(ref.id);
        if (found !== undefined && !found.isDone && found.until >= asked) return ref;
        const until = asked + REPEAT_MARGIN_MS;
        kept.set(ref.id, { content: Buffer.from(content), contentUntil: until, until, isDone: false });
        return ref;
      });
    },
    async get(ref) {
      return call(() => {
        const found = kept.get(ref.id);
        if (found?.isDone) throw new PermanentError('PAYLOAD_DONE', `payload ${ref.id} is marked as done`);
        const content = found?.content;
        if (content === undefined)
          throw new PermanentError('PAYLOAD_MISSING', `payload ${ref.id} is not there`);
        if (content.length !== ref.bytes || hashOf(content) !== ref.digest) {
          throw new PermanentError('PAYLOAD_DAMAGED', `payload ${ref.id} is not what was stored`);
        }
        return Buffer.from(content);
      });
    },
    async done(ref) {
      call(() => {
        const found = kept.get(ref.id);
        if (found === undefined || found.isDone) return;
        const now = clock.now();
        kept.set(ref.id, { ...found, isDone: true, contentUntil: now + GRACE_MS, until: now + KEEP_MS });
      });
    },
    async sweep() {
      let done = 0;
      const now = clock.now();
      for (const [id, { content: _removed, ...rest }] of kept) {
        if (rest.until <= now) kept.delete(id);
        else if (_removed !== undefined && rest.contentUntil <= now) kept.set(id, rest);
        else continue;
        done += 1;
      }
      return { due: done, done, failed: 0, isWhole: true };
    },
    storedBytes: () => [...kept.values()].reduce((sum, { content }) => sum + (content?.length ?? 0), 0),
    stored: () => [...kept.values()].filter(({ content }) => content !== undefined).length,
    calls: () => calls,
    failOn: (n, how) => void failures.set(n, how),
  };
}
