/**
 * Sweeps: work that no message asks for any more, looked for from time to time. Streams, schedules, payloads and the
 * outbox each have one, and all are called and answer alike. A sweep that dies, or that is called beside another, does
 * no harm; what it did not get to stays due.
 */
import type { SweepContext } from './handler.ts';

export type Swept<Details extends object = object> = Readonly<
  {
    /** What was due when the sweep saw it: streams, schedules, documents, rows. */
    due: number;
    /** Of these, what this sweep did. */
    done: number;
    /** Of these, what it could not do, or of which nothing is known; it stays due. */
    failed: number;
    /** Whether it looked at everything that was due. Otherwise its time was over, and the next one goes on. */
    isWhole: boolean;
  } & Details
>;

/**
 * Ends by `context.deadline`, or soon after `context.signal` is aborted. Rejects with `STORE_UNAVAILABLE` when the store
 * cannot be asked. `Needs`: what it reads of the context, where that is not all of it.
 *
 * @example
 * const sweeps: Sweep[] = [streams.sweep(book), messages.sweep];
 * for (const sweep of sweeps) await sweep(contextFor(clock, { consumer: 'orders', log }));
 */
export type Sweep<Details extends object = object, Needs extends keyof SweepContext = keyof SweepContext> = (
  context: Pick<SweepContext, Needs>,
) => Promise<Swept<Details>>;

/** A sum that a sweep counts up. */
export type Tally<Details extends object = object> = {
  -readonly [Field in keyof Swept<Details>]: Swept<Details>[Field];
};
