/**
 * What a write demands of the document before it. The three ways to fail have three codes, which clients
 * distinguish: ALREADY_EXISTS, NOT_FOUND, FAILED_PRECONDITION.
 */
import { status } from '@grpc/grpc-js';
import { invalidArgument, notFound, StatusError } from '../grpc-server.ts';
import type { Doc } from './doc.ts';
import { fromWire, type Microseconds, type WireTimestamp } from './time.ts';

export type WirePrecondition = Readonly<{
  conditionType?: string;
  exists?: boolean;
  updateTime?: WireTimestamp;
}> | null;

export type Precondition =
  | Readonly<{ kind: 'exists'; exists: boolean }>
  | Readonly<{ kind: 'updateTime'; updateTime: Microseconds }>;

export function parsePrecondition(wire: WirePrecondition): Precondition | undefined {
  if (wire === null || wire.conditionType === undefined) return undefined;
  if (wire.conditionType === 'exists') return { kind: 'exists', exists: wire.exists === true };
  if (wire.conditionType === 'updateTime' && wire.updateTime !== undefined) {
    return { kind: 'updateTime', updateTime: fromWire(wire.updateTime, 'current_document.update_time') };
  }
  throw invalidArgument(`the precondition ${wire.conditionType} is not known`);
}

export function checkPrecondition(
  precondition: Precondition | undefined,
  doc: Doc | undefined,
  name: string,
): void {
  if (precondition === undefined) return;
  if (precondition.kind === 'updateTime') {
    if (doc?.updateTime === precondition.updateTime) return;
    throw new StatusError(
      status.FAILED_PRECONDITION,
      `the stored version (${doc?.updateTime ?? 0}) does not match the required base version (${precondition.updateTime}): ${name}`,
    );
  }
  if (precondition.exists && doc === undefined) throw notFound(`No document to update: ${name}`);
  if (!precondition.exists && doc !== undefined) {
    throw new StatusError(status.ALREADY_EXISTS, `Document already exists: ${name}`);
  }
}
