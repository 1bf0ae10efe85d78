/** Assertions whose messages say what the server did instead. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { inspect, isDeepStrictEqual } from 'node:util';
import { status } from '@grpc/grpc-js';
import type { Case } from '../case.ts';
import type { PubsubWorld } from './world.ts';

export type PubsubCase = Case<PubsubWorld>;

type Code = keyof typeof status;

/** The call must answer this status, or one of them where no document says which. */
export async function refused(
  answer: Promise<unknown>,
  codes: Code | readonly Code[],
  what: string,
): Promise<void> {
  const wanted = [codes].flat();
  const seen = await answer.then(
    () => 'OK',
    (error: Error & { code?: number; details?: string }) =>
      wanted.find((code) => error.code === status[code]) ??
      `${status[error.code ?? -1] ?? 'an error'} (${error.details ?? error.message})`,
  );
  if (!wanted.some((code) => code === seen))
    assert.fail(`${what} is answered ${seen}, not ${wanted.join(' or ')}`);
}

/** Deeply equal, with a message of one line. */
export function same(seen: unknown, wanted: unknown, what = 'seen'): void {
  if (!isDeepStrictEqual(seen, wanted)) assert.fail(`${what}: ${shown(seen)}; documented: ${shown(wanted)}`);
}

const shown = (value: unknown): string => inspect(value, { breakLength: Infinity, compact: true, depth: 4 });

/** The call must answer OK. */
export async function accepted<T>(answer: Promise<T>, what: string): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { code = -1, details = String(error) } = error as { code?: number; details?: string };
    assert.fail(`${what} is answered ${status[code] ?? 'an error'} (${details}), not OK`);
  }
}

const LOOK_MS = 5;

/** For what takes real time and does not depend on the server's clock. `what` is what is missing at the end. */
export async function until(condition: () => boolean, what: string, limitMs = 10_000): Promise<void> {
  // By looks: a busy machine makes fewer of them.
  for (let waited = 0; !condition(); waited += LOOK_MS) {
    if (waited > limitMs) assert.fail(`within ${limitMs / 1_000} s not ${what}`);
    await wait(LOOK_MS);
  }
}

/** Nothing of the kind may happen for a while of real time. */
export async function never(condition: () => boolean, what: string, forMs = 150): Promise<void> {
  for (let waited = 0; waited < forMs; waited += LOOK_MS) {
    assert.ok(!condition(), what);
    await wait(LOOK_MS);
  }
  assert.ok(!condition(), what);
}

/** Cases of one feature. */
export const of =
  (feature: string) =>
  (title: string, source: string, run: PubsubCase['run'], embeddedOnly?: string): PubsubCase => ({
    feature,
    title,
    source,
    run,
    ...(embeddedOnly !== undefined && { embeddedOnly }),
  });

/** The service does it, the embedded server says UNIMPLEMENTED; `run` is what the service does. */
export const refusedHere = (
  title: string,
  source: string,
  attempt: (world: PubsubWorld) => Promise<unknown>,
  run: PubsubCase['run'],
): PubsubCase => ({
  feature: 'Refused here, not ignored',
  title,
  source,
  run,
  refusedHere: (world) => refused(attempt(world), 'UNIMPLEMENTED', 'it'),
});
