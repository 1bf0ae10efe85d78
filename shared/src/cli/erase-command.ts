/**
 * The command `erase`: whose record is meant. Pure.
 */
import { hashOf } from '../hash.ts';
import { CommandLineError, checkOperands } from './usage.ts';

export const ERASE_HELP = `What de-duplication keeps of one message, a hash of its identity:

  erase                           deletes the record; what comes again under the identity is processed again

  --dedup-id TEXT                 the publisher's dedupId, or instead:
  --message-id ID                 Pub/Sub's ID of a message without one
  --consumer NAME                 the function's CONSUMER (default: CONSUMER)
  --subscription ID               the function's subscription, an ID or a full name (default: SOURCE_SUBSCRIPTION)
  --dry-run                       says what is there, and deletes nothing
  --collection NAME               default: COLLECTION_PREFIX-claims, or pubsub-guarantees-claims`;

export type EraseCommand = Readonly<{
  /** The record's name: the hash that the middleware has for the identity. */
  key: string;
  isDry: boolean;
}>;

type Values = Readonly<{
  'dedup-id'?: string | undefined;
  'message-id'?: string | undefined;
  'dry-run'?: boolean | undefined;
}>;

/** `subscription`: a full name. Throws CommandLineError. */
export function eraseCommand(
  operands: readonly string[],
  values: Values,
  { consumer, subscription }: Readonly<{ consumer: string; subscription: string }>,
): EraseCommand {
  checkOperands(operands, 0, 'erase --dedup-id TEXT, or erase --message-id ID');
  const { 'dedup-id': dedupId, 'message-id': messageId } = values;
  if ((dedupId === undefined) === (messageId === undefined)) {
    throw new CommandLineError('the identity is not given; accepted: --dedup-id TEXT, or --message-id ID');
  }
  const [kind, value = ''] =
    dedupId === undefined ? (['messageId', messageId] as const) : (['dedupId', dedupId] as const);
  if (value === '') throw new CommandLineError('the identity is empty; accepted: one character or more');
  return { key: hashOf(consumer, subscription, kind, value), isDry: values['dry-run'] === true };
}
