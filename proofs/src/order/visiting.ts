/**
 * Sweeps and wake-ups over a memory store with a visit in a few lines, for tests of what they find and decide: it runs the held
 * messages behind `last`, as far as they follow each other.
 */
import { compose, type Handler } from '../../../shared/src/handler.ts';
import type { Log } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { type VirtualClock, virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { memoryStreams, type MemoryStreams } from '../../../shared/src/order/memory.ts';
import { type StreamOptions, type StreamPolicy, streamPolicy } from '../../../shared/src/order/options.ts';
import { isDue, progress } from '../../../shared/src/order/stream-state.ts';
import { type StreamSweep, streamSweep } from '../../../shared/src/order/sweep.ts';
import type { VisitContext, VisitStream } from '../../../shared/src/order/mailbox.ts';
import { type StreamWake, streamWake } from '../../../shared/src/order/wake.ts';
import { CONSUMER, patchOf } from '../../../shared/src/testing/stream-samples.ts';

type Line = Readonly<{ level: string; text: string } & Record<string, unknown>>;

export type Visiting = Readonly<{
  clock: VirtualClock;
  store: MemoryStreams;
  policy: StreamPolicy;
  /** `key#number` of what a visit has run. */
  runs: string[];
  lines: Line[];
  wakes: Readonly<{ key: string; atMs: number }>[];
  context(limitMs?: number): VisitContext;
  sweep: StreamSweep;
  wake: StreamWake;
}>;

export function visiting(
  options: StreamOptions = {},
  {
    wrap = (store) => store,
    visit,
  }: Readonly<{ wrap?: (store: MemoryStreams) => MemoryStreams; visit?: VisitStream }> = {},
): Visiting {
  const clock = virtualClock();
  const store = memoryStreams({ clock });
  const [runs, lines, wakes]: [string[], Line[], { key: string; atMs: number }[]] = [[], [], []];
  const wake: StreamOptions['wake'] = ({ key }, atMs) => void wakes.push({ key, atMs });
  const policy = streamPolicy(wrap(store), { clock, wake, ...options });
  const at =
    (level: string) =>
    (text: string, fields: object = {}) =>
      void lines.push({ level, text, ...fields });
  const log: Log = { info: at('info'), warn: at('warn'), error: at('error') };
  const handler: Handler = compose(async () => ack(), []);
  const simple: VisitStream = async (ref) => {
    const { state, version, nowMs } = await policy.store.read(ref);
    if (state === undefined || !isDue(state, nowMs)) return { taken: false, drained: 0 };
    const held = await policy.store.held(ref, state.last + 1, 100);
    const end = held.findIndex(({ number }, index) => number !== state.last + 1 + index);
    const run = end === -1 ? held : held.slice(0, end);
    const hashes = run.map(({ hash }) => hash);
    const fields = { ...progress(state, hashes), held: state.held - run.length, readyAt: null };
    const change = { patch: patchOf(fields), remove: run.map(({ number }) => number) };
    const committed = await policy.store.commit(ref, { version, state }, change);
    if (committed === undefined) return { taken: false, drained: 0 };
    for (const { number } of run) runs.push(`${ref.key}#${number}`);
    return { taken: true, drained: run.length };
  };
  return {
    clock,
    store,
    policy,
    runs,
    lines,
    wakes,
    context: (limitMs = 60_000) => ({
      consumer: CONSUMER,
      now: clock.now,
      deadline: clock.monotonic() + limitMs,
      signal: new AbortController().signal,
      log,
    }),
    sweep: streamSweep(policy, visit ?? simple)(handler),
    wake: streamWake(policy, visit ?? simple)(handler),
  };
}
