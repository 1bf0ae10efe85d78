/**
 * The one place where an outcome becomes an acknowledgement. A dead letter that is not confirmed is a nack, and so is
 * an outcome with messages that are not published: nothing is acknowledged that is not safe somewhere else.
 */
import { isOutcome, type Outcome } from '../outcome.ts';
import { refused } from '../errors.ts';

/**
 * Throws ConfigError `INVALID_OPTION` for what is no outcome.
 *
 * @example
 * const answer = settle(ack()); // 'ack'
 */
export function settle(outcome: Outcome): 'ack' | 'nack' {
  if (!isOutcome(outcome)) throw refused('outcome', outcome, 'an outcome, for example ack()');
  switch (outcome.kind) {
    case 'ack':
      return isPublished(outcome) ? 'ack' : 'nack';
    case 'deadLetter':
      return outcome.published === true ? 'ack' : 'nack';
    case 'retry':
      return 'nack';
  }
}

/** `publishing` takes from the outcome what it has published. A handler in JavaScript may put anything there. */
export function isPublished({ publish = [] }: Outcome & { kind: 'ack' }): boolean {
  return Array.isArray(publish) && publish.length === 0;
}
