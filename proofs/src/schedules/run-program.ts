/**
 * Plays a program to its end on virtual time, and returns what was visible from outside: answers and publishes.
 */
import { sleep } from '../../../shared/src/clock.ts';
import { TransientError } from '../../../shared/src/errors.ts';
import { decodeDelayed } from '../../../shared/src/tasks/task-body.ts';
import type { Task, TaskQueue } from '../../../shared/src/tasks/task-queue.ts';
import type { Message } from '../../../shared/src/message.ts';
import { memoryPayloads } from '../../../shared/src/payload/memory.ts';
import type { PayloadStore } from '../../../shared/src/payload/payload-store.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import type { Ledger } from '../../../shared/src/schedules/ledger.ts';
import type { MemoryLedger } from '../../../shared/src/schedules/memory.ts';
import { play, reasonOf, START } from './play.ts';
import { atCalls, send } from '../engine/faults.ts';
import { through } from '../engine/through.ts';
import { arrivalsOf, type Op, type Port, type Program, sentAt } from './programs.ts';

export type Write = Readonly<{
  name: string;
  by: 'message' | 'program';
  /** When it was published; when the program's transaction began. */
  sentMs: number;
  id: string;
  /** Absent: it cancels. */
  dueTimeMs: number | null;
  /** `scheduled`, `cancelled`, `tooLate`, …: the first answer that was no retry. */
  answer?: string;
  answeredMs?: number;
}>;

export type Publish = Readonly<{ name: string; atMs: number }>;
/** A task's run, of the schedule that its body holds. */
type Run = Readonly<{ name: string; fromMs: number; toMs: number }>;
export type History = Readonly<{
  writes: readonly Write[];
  publishes: readonly Publish[];
  runs: readonly Run[];
}>;

/** What a mutant changes. */
export type Way = Readonly<{
  wrapLedger?: (ledger: MemoryLedger, pause: () => Promise<void>) => Ledger;
  wrapQueue?: (queue: TaskQueue) => TaskQueue;
  received?: (message: Message, nowMs: number) => Message;
  /**
   * Every third schedule stays small, the others stand in a payload store, whose calls fail as those of the queue do.
   */
  isLarge?: true;
}>;

const KEY = 'k';
/** Larger than a task. */
const PADDING = '|'.padEnd(110_000, 'x');
const MINUTE_MS = 60_000;
const REDELIVERY_MS = 10_000;
const END_MS = 4 * 60 * MINUTE_MS;

type Mutable = { -readonly [Field in keyof Write]: Write[Field] };

export async function runProgram(way: Way, { ops, faults, latencies }: Program): Promise<History> {
  const writes: Mutable[] = [];
  const publishes: Publish[] = [];
  const runs: Run[] = [];
  const purged = new Set<Task>();
  // Of two faults of one call, the first counts.
  const faultOf = atCalls(
    Object.fromEntries(faults.toReversed().map(({ port, call: nth, how }) => [`${port} ${nth}`, how])),
  );
  const ask = <Result>(port: Port, work: () => Promise<Result>): Promise<Result> =>
    send(stage.clock, faultOf(port), work, (how) => new TransientError('LOST', `${port}: ${how}`));
  let call = 0;
  const isSmall = (name: string): boolean => Number(name.slice(1)) % 3 === 0;
  const dataOf = (name: string): string => (way.isLarge && !isSmall(name) ? name + PADDING : name);
  const store = way.isLarge && memoryPayloads({ clock: virtualClock(START) });
  const payloads: PayloadStore | undefined =
    store && through(ask, store, { put: 'queue', get: 'queue', done: 'queue' });
  const stage = play({
    wrapQueue: (tasks) => {
      const queue: TaskQueue = through(ask, tasks, { create: 'queue' });
      return way.wrapQueue?.(queue) ?? queue;
    },
    wrapLedger: (memory) => slow(memory),
    dispatches: false,
    ...(payloads !== undefined && { payloads }),
  });
  const { clock } = stage;
  const now = (): number => clock.now() - START;
  const pause = (): Promise<void> => sleep(clock, latencies[(call += 1) % latencies.length] ?? 0);

  function slow(memory: MemoryLedger): Ledger {
    const ledger = way.wrapLedger?.(memory, () => pause()) ?? memory;
    return {
      ...ledger,
      change: async (id, rule) => {
        await pause();
        const decision = await ask('ledger', () => ledger.change(id, rule));
        await pause();
        return decision;
      },
    };
  }

  const publish = stage.target.publish.bind(stage.target);
  Object.assign(stage.target, {
    publish: (message: Parameters<typeof publish>[0]) =>
      ask('publisher', async () => {
        const name = nameIn(message);
        publishes.push({ name, atMs: now() });
        return publish(message);
      }),
  });
  stage.tasks.dispatchTo(async (task, retryCount) => {
    if (purged.has(task)) return { status: 200 };
    const fromMs = now();
    const answer = await stage.dispatch(task, retryCount);
    runs.push({ name: nameIn(decodeDelayed(task.body).message), fromMs, toMs: now() });
    return answer;
  }, REDELIVERY_MS);

  const deliver = async (write: Mutable, message: Message): Promise<void> => {
    const outcome = await stage.handle(way.received?.(message, clock.now()) ?? message);
    if (outcome.kind !== 'ack') return void clock.after(REDELIVERY_MS, () => void deliver(write, message));
    write.answer ??= reasonOf(outcome);
    write.answeredMs ??= now();
  };
  const transact = async (write: Mutable): Promise<void> => {
    const { schedules, memory } = stage;
    const { dueTimeMs, name } = write;
    const change = await memory.transact(async (tx) => {
      const slot = await schedules.reserve(tx, KEY);
      await pause();
      if (dueTimeMs === null) return slot.cancel();
      return slot.put({ data: dataOf(name), attributes: { name }, deliverAt: new Date(START + dueTimeMs) });
    });
    write.answer = change.answer;
    write.answeredMs = now();
    await change.afterCommit().catch(() => {});
  };
  const begin = (op: Op, index: number): void => {
    if (op.kind === 'purge') {
      for (const task of stage.tasks.created) purged.add(task);
      return;
    }
    const { dueTimeMs } = op;
    const write: Mutable = { name: `W${index}`, by: op.kind, sentMs: now(), id: '', dueTimeMs };
    writes.push(write);
    if (op.kind === 'program') return void transact(write).catch(() => {});
    const due =
      dueTimeMs === null ? { cancel: 'true' } : { deliverAt: new Date(START + dueTimeMs).toISOString() };
    const message = stage.message({ scheduleKey: KEY, name: write.name, ...due }, dataOf(write.name));
    write.id = message.id;
    for (const at of arrivalsOf(op, index)) clock.after(at - now(), () => void deliver(write, message));
  };
  for (const [index, op] of ops.entries()) clock.after(sentAt(op, index), () => begin(op, index));
  for (let at = 0; at < END_MS; at += 5 * MINUTE_MS) {
    await clock.advance(5 * MINUTE_MS);
    await stage.sweep();
  }
  return { writes, publishes, runs };
}

const nameIn = ({ attributes }: Pick<Message, 'attributes'>): string => attributes['name'] ?? '';
