/**
 * Random programs over one key: messages that schedule, replace and cancel, arriving late, twice and in any order;
 * programs that do the same in transactions; a queue that is purged; and calls that fail before or after they worked.
 */
import fc from 'fast-check';
import type { NetworkFault } from '../engine/faults.ts';

/** Times are milliseconds from the start, on a grid, so that "before" and "after" are plain. */
export type Op =
  | Readonly<{
      kind: 'message';
      sentMs: number;
      /** How long after it was sent it arrives, each time. */
      arrivals: readonly number[];
      /** Absent: it cancels. */
      dueTimeMs: number | null;
    }>
  | Readonly<{ kind: 'program'; sentMs: number; dueTimeMs: number | null }>
  | Readonly<{ kind: 'purge'; sentMs: number }>;

export type Port = 'ledger' | 'queue' | 'publisher';

export type Program = Readonly<{
  ops: readonly Op[];
  /** Of the n-th call of a port, from 1. */
  faults: readonly Readonly<{ port: Port; call: number; how: NetworkFault }>[];
  /** How long calls of the ledger take, one after the other, over and over. */
  latencies: readonly number[];
}>;

const GRID_MS = 500;
const time = (seconds: number) =>
  fc.integer({ min: 0, max: (seconds * 1_000) / GRID_MS }).map((n) => n * GRID_MS);
/** Between the grid times, so that nothing is due at the time of an event. */
const dueTime = fc.option(
  time(90).map((ms) => ms + GRID_MS / 2),
  { freq: 3, nil: null },
);

const message = fc.record({
  kind: fc.constant('message' as const),
  sentMs: time(60),
  arrivals: fc.array(fc.oneof({ weight: 4, arbitrary: time(5) }, { weight: 1, arbitrary: time(7_200) }), {
    minLength: 1,
    maxLength: 3,
  }),
  dueTimeMs: dueTime,
});
const program = fc.record({ kind: fc.constant('program' as const), sentMs: time(60), dueTimeMs: dueTime });
const purge = fc.record({ kind: fc.constant('purge' as const), sentMs: time(60) });

const fault = fc.record({
  port: fc.constantFrom<Port>('ledger', 'queue', 'publisher'),
  call: fc.integer({ min: 1, max: 12 }),
  how: fc.constantFrom<NetworkFault>({ kind: 'refused' }, { kind: 'reply lost' }),
});

const latencies = fc.array(fc.integer({ min: 0, max: 1_500 }), { minLength: 1, maxLength: 5 });

/** One message after the other, as they were sent, and nothing fails: what the ten-line model is about. */
export const calmPrograms: fc.Arbitrary<Program> = fc.record({
  ops: fc.array(fc.oneof({ weight: 3, arbitrary: message }, { weight: 1, arbitrary: program }), {
    minLength: 1,
    maxLength: 7,
  }),
  faults: fc.constant([]),
  latencies: fc.constant([0]),
});

export const programs: fc.Arbitrary<Program> = fc.record({
  ops: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: message },
      { weight: 3, arbitrary: program },
      { weight: 2, arbitrary: purge },
    ),
    { minLength: 1, maxLength: 7 },
  ),
  faults: fc.array(fault, { maxLength: 4 }),
  latencies,
});

/** Each event gets its own millisecond; equal ones keep the order of the program. */
export const sentAt = (op: Op, index: number): number => op.sentMs + index * 7;
export const arrivalsOf = (op: Op, index: number): readonly number[] =>
  op.kind === 'message'
    ? op.arrivals.map((afterMs, copy) => sentAt(op, index) + afterMs + copy * 2)
    : [sentAt(op, index)];
