/**
 * One subscription at work: its delivery, and the push to its endpoint where it has one. When it is removed its calls end
 * with an error, and nothing that was delivered is settled any more.
 */
import type { Clock } from '../clock.ts';
import type { Faults } from '../faults/faults.ts';
import type { Identity } from '../identity.ts';
import { toDeadLetters } from './dead-letter.ts';
import { createDelivery } from './delivery.ts';
import { newBacklogs } from './disturbed-backlog.ts';
import { parseFilter } from './filter.ts';
import { startPush, type Push } from './push.ts';
import { expiration } from './expiration.ts';
import { endCalls, type SubscriptionState } from './subscription-state.ts';
import { durationMs, type PubsubMessage, type Subscription } from './wire.ts';

export type Held = SubscriptionState & {
  current: Subscription;
  push: Push | undefined;
  /** Of its own timers: none of them calls back once it has expired. */
  readonly clock: Clock;
};

export type HeldPorts = Readonly<{
  clock: Clock;
  log: (line: string) => void;
  /** Signs the tokens of authenticated pushes. */
  identity: Identity | undefined;
  faults: Faults | undefined;
  /** Whether pushes also go to addresses that are not this machine's own. */
  remoteTargets: boolean;
  topics: Readonly<{ has(name: string): boolean }>;
  publish: (topic: string, messages: readonly PubsubMessage[]) => Readonly<{ deliver(): void }>;
  topicRetentionMs: (topic: string) => number;
  /** False when the subscription has expired, which is carried out then. */
  lives: (held: Held) => boolean;
}>;

/** It pushes nothing before `setPush`. `idleMs`: for how long it had not been used before. */
export function holdSubscription(
  ports: HeldPorts,
  config: Subscription,
  nextAckId: () => string,
  idleMs: number,
): Held {
  const { log, faults, topics, publish, topicRetentionMs, lives } = ports;
  const { now } = ports.clock;
  const clock: Clock = {
    ...ports.clock,
    after: (milliseconds, act) => ports.clock.after(milliseconds, () => void (lives(held) && act())),
  };
  const changing: Pick<Held, 'current' | 'push'> = { current: config, push: undefined };
  const current = (): Subscription => changing.current;
  // What the topic retains for longer can be sought, so the subscription must not drop it earlier.
  const retentionMs = (): number => {
    const { messageRetentionDuration, topic } = current();
    const own = messageRetentionDuration === null ? Infinity : durationMs(messageRetentionDuration);
    return Math.max(own, topicRetentionMs(topic));
  };
  const delivery = createDelivery(
    clock,
    current,
    newBacklogs(faults, now, current),
    nextAckId,
    toDeadLetters(current, topics, publish, log),
    retentionMs,
  );
  const pushing = (): number => changing.push?.inFlight() ?? 0;
  const matches = parseFilter(config.filter);
  const open: Held['open'] = new Map();
  const held = Object.assign(changing, {
    clock,
    config: current,
    delivery,
    expiration: expiration(now, current, () => open.size > 0, idleMs),
    matches,
    pushing,
    open,
  });
  return held;
}

/** Starts, changes or ends the push, as the subscription is configured now. */
export function setPush({ log, identity, faults, remoteTargets }: HeldPorts, state: Held): void {
  const { clock, config, delivery, expiration } = state;
  state.push?.stop();
  const { detached } = state.current;
  const pushConfig = detached ? null : state.current.pushConfig;
  state.push =
    pushConfig === null
      ? undefined
      : startPush(
          { clock, log, identity, faults, remoteTargets, delivery, pushed: expiration.used },
          config,
          pushConfig,
        );
}

/** Ends everything of it for good. */
export function dropHeld(state: Held, error: Error): void {
  endCalls(state, error);
  state.push?.abort();
  // Revokes what is delivered, so that whatever becomes of it, it is no failure that could go to a dead-letter topic.
  state.delivery.restart([], []);
  state.delivery.close();
}
