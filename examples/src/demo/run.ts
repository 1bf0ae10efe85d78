/**
 * One run of the demo: starts a stack of its own, publishes, kills the functions half-way and starts them again while
 * publishing goes on, waits until everything has arrived or the time is up, and judges. Whatever happens, everything
 * that was started is closed.
 */
import { randomUUID } from 'node:crypto';
import { type Clock, sleep } from 'pubsub-guarantees';
import { type Toolkit, startToolkit } from 'pubsub-guarantees-emulator';
import { check, type Report } from './check.ts';
import { connect } from './connections.ts';
import { type CrashFacts, type CrashPlan, crashAt } from './crash.ts';
import { type DemoEvent, LONGEST_MS } from './event.ts';
import { LANES } from './lanes.ts';
import type { Observed, Published } from './observed.ts';
import { publishAll } from './publishing.ts';
import { subscribe } from './subscribing.ts';
import type { RunFacts } from './table.ts';
import { askedDelayMs, waitingFor } from './waiting.ts';

export type RunOptions = Readonly<{
  events: readonly DemoEvent[];
  /** Absent: the claims are in the stack's Firestore. */
  redisUrl?: string;
  /** On Google's own Pub/Sub and Firestore emulators. Default: false. */
  official?: boolean;
  clock: Clock;
  /** Ends the run early; it then rejects with its reason. */
  signal: AbortSignal;
  show: (text: string) => void;
  /** What the stack and its processes say. */
  log?: (line: string) => void;
}>;

const LOOK_EVERY_MS = 250;

export async function runDemo(options: RunOptions): Promise<Readonly<{ report: Report; facts: RunFacts }>> {
  const { redisUrl, official = false, clock, signal, show, log } = options;
  const start = clock.monotonic();
  show('starting the local stack …');
  const stack = await startToolkit({
    official,
    ...(redisUrl !== undefined && { store: 'redis', redisUrl }),
    ...(log !== undefined && { log }),
  });
  try {
    signal.throwIfAborted();
    const { observed, crash } = await observe(stack, options);
    const seconds = (clock.monotonic() - start) / 1_000;
    return { report: check(observed), facts: { seconds, ...crash } };
  } finally {
    await stack.close();
  }
}

async function observe(
  stack: Toolkit,
  options: RunOptions,
): Promise<{ observed: Observed; crash: CrashFacts }> {
  const { events, redisUrl, clock, signal } = options;
  const connections = connect(stack.addresses, redisUrl);
  const client = connections.pubsub();
  const publisher = connections.publisher(client);
  const subscribers = subscribe({ client, publisher, store: connections.claims, clock }, randomUUID());
  // A crash that fails must end the publishing as well.
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  try {
    const published: Published[] = [];
    const crash = crashAt(Math.floor(events.length / 2), stack.functions, clock, stop);
    const state = { publishingDone: false, lastDueMs: 0, lastPublishMs: clock.monotonic() };
    const record = (one: Published): void => {
      published.push(one);
      state.lastPublishMs = clock.monotonic();
      const lane = LANES.find(({ source }) => source === one.event.topic);
      const asked = lane?.later ? Math.min(askedDelayMs(one.event.attributes, clock.now()), LONGEST_MS) : 0;
      state.lastDueMs = Math.max(state.lastDueMs, state.lastPublishMs + asked);
      crash.onPublished(published.length);
    };
    const publishing = publishAll(events, () => connections.pubsub(), clock, record, stop).then(() => {
      state.publishingDone = true;
    });
    const observed = (): Observed => ({
      published,
      arrivals: subscribers.arrivals,
      deadLetters: subscribers.deadLetters,
    });
    const waiting = waitUntilOver(observed, state, crash, options, stop);
    await Promise.all([publishing, waiting, crash.done]).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    });
    signal.throwIfAborted();
    return { observed: observed(), crash: crash.facts };
  } finally {
    failed.abort();
    await subscribers.close();
    await connections.close();
  }
}

type State = Readonly<{ publishingDone: boolean; lastDueMs: number; lastPublishMs: number }>;

async function waitUntilOver(
  observed: () => Observed,
  state: State,
  crash: CrashPlan,
  { events, clock, show }: RunOptions,
  stop: AbortSignal,
): Promise<void> {
  const start = clock.monotonic();
  let seen = '';
  let lastSeenMs = start;
  while (!stop.aborted) {
    const now = observed();
    const nowMs = clock.monotonic();
    const counts = `${now.published.length} ${now.arrivals.length} ${now.deadLetters.length}`;
    if (counts !== seen) lastSeenMs = nowMs;
    seen = counts;
    const { over, missing } = waitingFor(now, {
      nowMs,
      lastSeenMs,
      publishingDone: state.publishingDone,
      lastDueMs: state.lastDueMs,
      ...(crash.servingSinceMs !== undefined && { servingSinceMs: crash.servingSinceMs }),
    });
    const delivered = now.arrivals.filter(({ effect }) => effect).length;
    show(
      `${((nowMs - start) / 1_000).toFixed(0)} s · functions ${crash.state} · sent ${now.published.length} of ${events.length} · ran ${delivered} · waiting for ${missing}`,
    );
    if (over) return;
    await sleep(clock, LOOK_EVERY_MS, stop);
  }
}
