/**
 * The expected history: a model of ten lines for programs in which nothing fails, and rules over the observed history
 * for all others.
 */
import { arrivalsOf, type Op, type Program, sentAt } from './programs.ts';
import type { History, Publish, Write } from './run-program.ts';

export function expected({ ops }: Program): readonly Publish[] {
  const delivered: Publish[] = [];
  let top = -1;
  let pending: Publish | undefined;
  const fire = (untilMs: number): void => {
    if (pending === undefined || pending.atMs > untilMs) return;
    delivered.push(pending);
    pending = undefined;
  };
  for (const { atMs, version = Math.max(atMs, top + 1), name, dueTimeMs } of eventsOf(ops)) {
    fire(atMs);
    if (version <= top) continue;
    top = version;
    pending = dueTimeMs === null ? undefined : { name, atMs: Math.max(dueTimeMs, atMs) };
  }
  fire(Infinity);
  return delivered;
}

type Event = Readonly<{ atMs: number; version?: number; name: string; dueTimeMs: number | null }>;

const eventsOf = (ops: readonly Op[]): readonly Event[] =>
  ops
    .flatMap((op, index): Event[] => {
      if (op.kind === 'purge') return [];
      const version = op.kind === 'message' ? { version: sentAt(op, index) } : {};
      const what = { name: `W${index}`, dueTimeMs: op.dueTimeMs, ...version };
      return arrivalsOf(op, index).map((atMs) => ({ atMs, ...what }));
    })
    .sort((one, other) => one.atMs - other.atMs);

export type Invariant =
  | 'never before its due time'
  | 'a success is final'
  | 'the last one is delivered'
  | 'in time while nothing fails'
  | 'once while nothing fails'
  | 'every message is answered';

/** Calls take up to three seconds each, and a fire that loses a race is tried again ten seconds later. */
const IN_TIME_MS = 90_000;

export function violations(history: History, { ops, faults }: Program): readonly Invariant[] {
  const { writes, publishes } = history;
  const found = new Set<Invariant>();
  const named = new Map(writes.map((write) => [write.name, write]));
  const isCalm = faults.length === 0 && ops.every(({ kind }) => kind !== 'purge');
  for (const { name, atMs } of publishes) {
    const write = named.get(name);
    if (write?.dueTimeMs === undefined || write.dueTimeMs === null || atMs < write.dueTimeMs) {
      found.add('never before its due time');
      continue;
    }
    const killers = writes.filter((other) => isSuccess(other) && isNewer(other, write));
    if (killers.some((killer) => isAfter(history, atMs, name, killer))) found.add('a success is final');
  }
  for (const write of writes) {
    if (write.by === 'message' && write.answer === undefined) found.add('every message is answered');
    const times = publishes.filter(({ name }) => name === write.name);
    if (isCalm && times.length > 1) found.add('once while nothing fails');
    const isLast = writes.every((other) => other === write || isNewer(write, other));
    if (!isLast || !isSuccess(write) || write.dueTimeMs === null) continue;
    const [first] = times;
    if (first === undefined) found.add('the last one is delivered');
    else if (isCalm && first.atMs > Math.max(write.dueTimeMs, write.answeredMs ?? 0) + IN_TIME_MS) {
      found.add('in time while nothing fails');
    }
  }
  return [...found];
}

const isSuccess = ({ answer, dueTimeMs }: Write): boolean =>
  answer === (dueTimeMs === null ? 'cancelled' : 'scheduled');

/** Whether this is certain: a program's version is a time of the store between its begin and its answer. */
function isNewer(one: Write, other: Write): boolean {
  if (one.by === 'message' && other.by === 'message') return one.sentMs > other.sentMs;
  return one.sentMs > (other.by === 'message' ? other.sentMs : (other.answeredMs ?? Infinity));
}

/** A message replaces a delivery that is already in flight, and gets no answer: there the run in flight may end. */
function isAfter({ runs }: History, atMs: number, name: string, killer: Write): boolean {
  const { answeredMs = Infinity, by, dueTimeMs } = killer;
  if (atMs <= answeredMs) return false;
  if (by === 'program' || dueTimeMs === null) return true;
  return !runs.some((run) => run.name === name && run.fromMs <= answeredMs && run.toMs >= atMs);
}
