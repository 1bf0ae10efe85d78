/**
 * For the tests of this folder: documents that fail on request the way a network does.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { storeUnavailable } from '../../../shared/src/errors.ts';
import type { ClaimDocuments } from '../../../shared/src/dedup/document-claims.ts';

export type Fault =
  /** Never arrives; the caller hears that the store is unavailable. */
  | 'request lost'
  /** Applied; no reply ever comes. */
  | 'all replies lost'
  /** Applied, its reply lost, sent again by the client: the caller hears what the second one did. */
  | 'reply lost'
  /** Applied this much later, and answered then. */
  | Readonly<{ kind: 'delayed'; milliseconds: number }>
  /** The first request is delayed in the net; the client's repeat is applied and answered now. */
  | Readonly<{ kind: 'late copy'; milliseconds: number }>;

type Method = 'create' | 'read' | 'update' | 'remove';
export type Call = Readonly<{ method: Method; detail: string; key: string; number: number }>;

/** `plan` is asked before each call; `calls` lists them as `create claim`, `update done`, `read`, … */
export function faultyDocuments(
  inner: ClaimDocuments,
  clock: Clock,
  plan: (call: Call) => Fault | undefined,
): ClaimDocuments & Readonly<{ calls: readonly string[] }> {
  const calls: string[] = [];
  const send = async <Value>(
    method: Method,
    detail: string,
    key: string,
    apply: () => Promise<Value>,
  ): Promise<Value> => {
    calls.push(detail === '' ? method : `${method} ${detail}`);
    const fault = plan({ method, detail, key, number: calls.length });
    if (fault === undefined) return apply();
    if (fault === 'request lost') throw storeUnavailable('the request was lost');
    if (fault === 'all replies lost') {
      await apply();
      throw storeUnavailable('the reply was lost');
    }
    if (fault === 'reply lost') {
      await apply();
      return apply();
    }
    if (fault.kind === 'late copy') {
      clock.after(fault.milliseconds, () => void apply());
      return apply();
    }
    await sleep(clock, fault.milliseconds);
    return apply();
  };
  return {
    calls,
    create: (key, write) => send('create', write.kind, key, () => inner.create(key, write)),
    read: (key) => send('read', '', key, () => inner.read(key)),
    update: (key, revision, write) =>
      send('update', write.kind, key, () => inner.update(key, revision, write)),
    remove: (key, revision) => send('remove', '', key, () => inner.remove(key, revision)),
    tokenOf: (revision) => inner.tokenOf(revision),
  };
}

/**
 * The clock of a process that can be paused: time goes on, its timers do not fire. They do after `resume`, when
 * whatever else was waiting may already have run. A process that is never resumed has crashed.
 */
export function pausable(clock: Clock): Clock & Readonly<{ pause(): void; resume(): void }> {
  let isPaused = false;
  const late = new Set<() => void>();
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after(milliseconds, callback) {
      const fire = (): void => {
        if (isPaused) late.add(fire);
        else callback();
      };
      const cancel = clock.after(milliseconds, fire);
      return () => {
        cancel();
        late.delete(fire);
      };
    },
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
      for (const fire of late) if (late.delete(fire)) fire();
    },
  };
}

/** A promise and how to settle it. */
export function gate(): Readonly<{ opened: Promise<void>; open(): void }> {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
