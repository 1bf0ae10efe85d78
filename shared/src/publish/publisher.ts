/**
 * The publishing port.
 */
import type { OutgoingMessage } from '../message.ts';

export type Publisher = Readonly<{
  /**
   * Resolves with the message ID once the service has confirmed the message, never before.
   * Messages of one ordering key, published one after the other, keep that order.
   * Rejects with PermanentError when the service can never take it (unknown topic, a limit), with TransientError
   * otherwise; a transient rejection does not say that the message was not published.
   */
  publish(message: OutgoingMessage): Promise<string>;
}>;
