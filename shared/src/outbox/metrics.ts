/**
 * What the relay measures. Nothing in it names a key or a row.
 */
import { ATTR, count, gauge, record } from '../telemetry/instruments.ts';
import { errorType } from '../telemetry/spans.ts';

/** A row was published so long after its commit. A copy after a lost reply or a lost lease counts again. */
export function recordPublished(lagMs: number): void {
  count('outboxPublished', {});
  record('outboxLag', lagMs, {});
}

export function recordFailure(error: unknown): void {
  count('outboxFailures', { [ATTR.reason]: errorType(error) });
}

/** What a pass that went to the end has seen. */
export function recordPass(blocked: number, oldestMs: number): void {
  gauge('blockedOutboxStreams', blocked, {});
  gauge('oldestPending', oldestMs / 1_000, {});
}
