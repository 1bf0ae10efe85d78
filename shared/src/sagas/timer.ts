/**
 * The timer of an instance: a message to oneself, named by its arm. It is never cancelled and moved only to an earlier
 * time, so what is left over is stale by its arm, and a tick that finds nothing due asks for the next one.
 */
import { type Growth, pauseAfter } from '../async/backoff.ts';
import { dueMs, type Instance, isDecided, isEnded, openAction, stepOf } from './instance.ts';

/** After a tick: two ticks of one instance are never closer together. */
const SHORTEST_PAUSE_MS = 1_000;
/** After a definition's function threw. */
const PAUSES: Growth = { minMs: 2_000, maxMs: 600_000 };

export type Timed = Readonly<{
  instance: Instance;
  tick?: Readonly<{ arm: number; atMs: number }>;
}>;

/** `kind` is that of the event: a tick, or the sweep in its place, has used up the arm. */
export function withTimer(instance: Instance, kind: string, nowMs: number): Timed {
  const { armedAtMs, wakeAtMs: _before, ...rest } = instance;
  if (isEnded(instance)) return { instance: rest };
  const isTick = kind === 'tick' || kind === 'sweep';
  const dueAtMs = nextDueMs(instance, nowMs);
  const armed = isTick ? undefined : armedAtMs;
  if (armed !== undefined && armed <= dueAtMs) {
    return { instance: { ...rest, armedAtMs: armed, wakeAtMs: dueAtMs } };
  }
  const atMs = isTick ? Math.max(dueAtMs, nowMs + SHORTEST_PAUSE_MS) : dueAtMs;
  const arm = instance.arm + 1;
  return { instance: { ...rest, arm, armedAtMs: atMs, wakeAtMs: dueAtMs }, tick: { arm, atMs } };
}

function nextDueMs(instance: Instance, nowMs: number): number {
  const { failure, plan, steps, state, deadlineAtMs } = instance;
  if (failure !== undefined) return nowMs + pauseAfter(failure.times, PAUSES);
  const open = plan.map(({ name }) => stepOf(steps, name)).filter((step) => openAction(step) !== undefined);
  const times = open.map((step) => dueMs(step, nowMs));
  // The deadline asks the pivot; once that is asked, or has decided, nothing is left for it to do.
  const isWithdrawing = open.some(({ status }) => status === 'withdrawing');
  const counts = state === 'running' && !isWithdrawing && !isDecided(instance);
  return Math.min(...times, counts ? (deadlineAtMs ?? Infinity) : Infinity, nowMs + LONGEST_WAKE_MS);
}

/** No instance is without a time at which something looks at it. */
const LONGEST_WAKE_MS = 28 * 86_400_000;
