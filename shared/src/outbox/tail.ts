/**
 * Log tailing: one row, looked at because the database says that it was created, so that it need not wait for a pass.
 *
 * A writer that lives publishes its rows right after its commit. So a row is left to its writer for `graceMs` after the
 * commit, and then published from here, also under the lease that the writer still has: a process that died does not
 * release it. Where the writer was merely slow a copy goes out, under the same `dedupId`. An event that comes twice, or
 * late, finds nothing to do; one that is lost leaves its row to the next pass. A crash here leaves a lease that ends.
 */
import { sleep } from '../clock.ts';
import { publishUnordered, type UnorderedAnswer } from './unordered-rows.ts';
import type { Place } from './rows.ts';
import type { DrainPorts } from './stream-lease.ts';

/**
 * `sent`: by this call, or by one that it shared a run with. `left`: there was nothing to do, or another process is at it,
 * or a pass comes to it when it is due. `failed`: a publish did not succeed, or the store did not answer on the way; the
 * row is due again later.
 */
export type Tailed = UnorderedAnswer;

/** Ends within the grace, a publish and a few calls of the store. Rejects when the store cannot be asked. */
export async function tail(
  ports: DrainPorts,
  id: string,
  graceMs: number,
  flush: (place: Place) => Promise<Tailed>,
): Promise<Tailed> {
  const { store, clock } = ports;
  const seen = await store.look(id);
  if (!seen?.isSelected) return 'left';
  // Whether a stream has a writer that publishes is not known; of a row without order its lease says it.
  const hasWriter = seen.place !== undefined || seen.isWriters;
  const leftMs = Math.min(graceMs, seen.createdMs + graceMs - seen.nowMs);
  const waits = hasWriter && leftMs > 0;
  if (waits) await sleep(clock, leftMs);
  if (seen.place === undefined) return publishUnordered(ports, id, { fromWriter: true });
  if (waits && !(await store.look(id))?.isSelected) return 'left';
  return flush(seen.place);
}
