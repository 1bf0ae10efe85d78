/** What a queue has done and has to do, in numbers, and the sums over all queues of a server. */

export type QueueStats = Readonly<{
  pending: number;
  inFlight: number;
  /** Attempts since the queue was created. */
  dispatched: number;
  succeeded: number;
  /** Tasks deleted because their attempts or their time were used up. */
  givenUp: number;
  /**
   * When something will be dispatched if no request comes or ends before: the earliest schedule time, or the time at
   * which the rate allows the next. Undefined when nothing waits, the queue is paused, or the next dispatch waits for
   * one that is in flight. A clock that is moved to this time, and no further, misses nothing.
   */
  nextDueMs: number | undefined;
}>;

export type CloudTasksStats = QueueStats & Readonly<{ queues: number }>;

export function sumOf(queues: readonly Readonly<{ stats(): QueueStats }>[]): CloudTasksStats {
  const all = queues.map((queue) => queue.stats());
  const sum = (pick: (stats: QueueStats) => number): number =>
    all.reduce((total, stats) => total + pick(stats), 0);
  const due = all.flatMap(({ nextDueMs }) => nextDueMs ?? []);
  return {
    queues: queues.length,
    pending: sum((stats) => stats.pending),
    inFlight: sum((stats) => stats.inFlight),
    dispatched: sum((stats) => stats.dispatched),
    succeeded: sum((stats) => stats.succeeded),
    givenUp: sum((stats) => stats.givenUp),
    nextDueMs: due.length > 0 ? Math.min(...due) : undefined,
  };
}
