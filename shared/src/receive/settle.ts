/**
 * The one place where an outcome becomes an acknowledgement. A dead letter that is not confirmed is a nack: nothing
 * is acknowledged that is not safe somewhere else.
 */
import type { Outcome } from '../outcome.ts';

export function settle(outcome: Outcome): 'ack' | 'nack' {
  switch (outcome.kind) {
    case 'ack':
      return 'ack';
    case 'deadLetter':
      return outcome.published === true ? 'ack' : 'nack';
    case 'retry':
      return 'nack';
  }
}
