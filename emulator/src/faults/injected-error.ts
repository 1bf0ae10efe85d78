/** The errors that a fault answers with. Each says that it was asked for, and by which rule. */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import type { Fault } from './faults.ts';
import type { Action } from './plan.ts';

type Of<Type extends Action['type']> = Extract<Action, { type: Type }>;

/** What is answered where a connection breaks off: what a client of gRPC sees then. */
const BROKEN = 'UNAVAILABLE';

export const refusal = ({ rule }: Fault, { code = BROKEN, message }: Of<'fail'>): StatusError =>
  new StatusError(codeOf(code), message ?? `Refused by rules[${rule}] of the faults.`);

export const lostReply = ({ rule }: Fault, { code = BROKEN }: Of<'lose-reply'>): StatusError =>
  new StatusError(codeOf(code), `The reply was lost by rules[${rule}] of the faults.`);

export const brokenOff = (): StatusError =>
  new StatusError(status.UNAVAILABLE, 'The connection was broken off by the faults.');

function codeOf(name: string): number {
  const code: unknown = Reflect.get(status, name);
  return typeof code === 'number' ? code : status.UNKNOWN;
}
