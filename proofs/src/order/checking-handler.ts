/**
 * A handler that checks the protocol's promises each time it is called: in order, one live lease, no rerun of what is
 * done, tokens that grow.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { inProgressElsewhere, PermanentError } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { ack, deadLetter, retry } from '../../../shared/src/outcome.ts';
import type { MemoryStreams } from '../../../shared/src/order/memory.ts';
import { MAX_ATTEMPTS, refOf } from './schedule.ts';
import type { Traffic } from './traffic.ts';

type Effect = Readonly<{ key: string; number: number; content: string; token: string }>;

export type Behaviour = Readonly<{
  alive(): boolean;
  /** How long this call takes, whether it ends when its signal is aborted, and whether its process dies in it. */
  next(): Readonly<{ takesMs: number; obeys: boolean; dies: boolean }>;
  crash(): void;
  traffic: Pick<Traffic, 'failuresLeft' | 'fatal'>;
}>;

export type Recording = Readonly<{
  effects: Effect[];
  violations: string[];
  /** How often a number's handler has failed in a way that says something about the message, by `key#number`. */
  failures: Map<string, number>;
  /** How often content was started that kills its process each time. */
  kills: Map<string, number>;
  /** Calls so far. */
  starts: { count: number };
  handler(behaviour: Behaviour): Handler;
}>;

type Run = Readonly<{ key: string; token: string; until: number; alive: () => boolean }>;

/** `behindOnce`: a number may have been done under an earlier lease, and its repeat is not seen here. */
export function checkedHandlers(clock: Clock, store: MemoryStreams, behindOnce = false): Recording {
  const effects: Effect[] = [];
  const violations: string[] = [];
  const failures = new Map<string, number>();
  const failed = (name: string): void => void failures.set(name, (failures.get(name) ?? 0) + 1);
  const starts = { count: 0 };
  const kills = new Map<string, number>();
  const running = new Set<Run>();
  const newest = new Map<string, bigint>();
  const check = (holds: boolean, text: string): void => {
    if (!holds) violations.push(`${Math.round(clock.monotonic())} ms: ${text}`);
  };

  const checkStart = (key: string, number: number, run: Run): void => {
    const { token } = run;
    const last = store.stateOf(refOf(key))?.last ?? 0;
    const doneHere = new Set(
      effects
        .filter((one) => one.key === key && (behindOnce || one.token === token))
        .map((one) => one.number),
    );
    for (let before = last + 1; before < number; before += 1) {
      check(doneHere.has(before), `${key}#${number} started before ${before} was done`);
    }
    check(number > last, `${key}#${number} started although it was done`);
    check(!doneHere.has(number), `${key}#${number} ran twice under one lease`);
    for (const other of running) {
      const believes = other.alive() && clock.monotonic() < other.until;
      check(other.key !== key || other.token === token || !believes, `${key}: two live leases`);
    }
    check(BigInt(token) >= (newest.get(key) ?? 0n), `${key}#${number}: the fencing token went back`);
    newest.set(key, BigInt(token));
  };

  return {
    effects,
    violations,
    failures,
    starts,
    kills,
    handler: (behaviour) => async (message, context) => {
      const content = message.data.toString();
      const [key = '', text = ''] = content.split('#');
      const number = Number(text);
      const token = context.fencingToken ?? '0';
      const run: Run = { key, token, until: context.deadline, alive: behaviour.alive };
      starts.count += 1;
      if (behaviour.traffic.fatal.get(content) === 'kills') kills.set(content, (kills.get(content) ?? 0) + 1);
      checkStart(key, number, run);
      running.add(run);
      const { takesMs, obeys, dies } = behaviour.next();
      await sleep(clock, takesMs, obeys ? context.signal : undefined);
      running.delete(run);
      if (dies || behaviour.traffic.fatal.get(content) === 'kills') behaviour.crash();
      if (!behaviour.alive()) return new Promise(() => undefined);
      if (obeys && context.signal.aborted) return retry(context.signal.reason);
      const { failuresLeft, fatal } = behaviour.traffic;
      const fate = fatal.get(content);
      if (fate !== undefined) {
        failed(`${key}#${number}`);
        const error = new PermanentError('FATAL', 'never');
        return fate === 'permanent' ? deadLetter(error) : retry(error);
      }
      const left = failuresLeft.get(content) ?? 0;
      if (left > 0) {
        failuresLeft.set(content, left - 1);
        if (left > MAX_ATTEMPTS - 1) return retry(inProgressElsewhere('another delivery has it'));
        failed(`${key}#${number}`);
        return retry(new Error('not yet'));
      }
      effects.push({ key, number, content, token });
      return ack();
    },
  };
}
