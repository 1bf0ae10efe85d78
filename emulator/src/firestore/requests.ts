/**
 * What the methods of google.firestore.v1.Firestore receive and answer, as the wire gives it: the oneofs by
 * their names, 64-bit numbers as strings. Whatever an option asks that is not handled is refused here.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { WireAggregation } from './aggregations.ts';
import type { Doc } from './doc.ts';
import type { WireExplain } from './explain.ts';
import { type FieldPath, parseFieldPath, projectFields } from './field-path.ts';
import type { WireQuery } from './query.ts';
import type { Selector } from './reading.ts';
import { fromWire, type Microseconds, toWire, type WireTimestamp } from './time.ts';
import type { TransactionOptions } from './transactions.ts';
import type { WireMask, WireWrite } from './writes.ts';

export type WireOptions = Readonly<{
  mode?: string;
  readOnly?: Readonly<{ readTime?: WireTimestamp | null }>;
  readWrite?: Readonly<{ retryTransaction: Uint8Array }>;
}> | null;

type Consistency = Readonly<{
  consistencySelector?: string;
  transaction?: Uint8Array;
  newTransaction?: WireOptions;
  readTime?: WireTimestamp;
}>;

export type GetDocumentRequest = Consistency & Readonly<{ name: string; mask: WireMask }>;
export type BatchGetRequest = Consistency &
  Readonly<{ database: string; documents: readonly string[]; mask: WireMask }>;
export type RunQueryRequest = Consistency &
  Readonly<{ parent: string; structuredQuery?: WireQuery; explainOptions?: WireExplain }>;
export type RunAggregationQueryRequest = Consistency &
  Readonly<{
    parent: string;
    structuredAggregationQuery?: Readonly<{
      structuredQuery?: WireQuery;
      aggregations: readonly WireAggregation[];
    }>;
    explainOptions?: WireExplain;
  }>;
export type BeginRequest = Readonly<{ database: string; options: WireOptions }>;
export type CommitRequest = Readonly<{
  database: string;
  writes: readonly WireWrite[];
  transaction: Uint8Array;
}>;
export type BatchWriteRequest = Readonly<{ database: string; writes: readonly WireWrite[] }>;
export type RollbackRequest = Readonly<{ database: string; transaction: Uint8Array }>;
export type ListCollectionIdsRequest = Consistency & Readonly<{ parent: string }> & Page;
export type ListDocumentsRequest = Consistency &
  Readonly<{
    parent: string;
    collectionId: string;
    orderBy: string;
    mask: WireMask;
    showMissing: boolean;
  }> &
  Page;
export type PartitionQueryRequest = Consistency &
  Readonly<{ parent: string; structuredQuery?: WireQuery; partitionCount: string }> &
  Page;
export type ListenRequest = Readonly<{
  database: string;
  targetChange?: string;
  addTarget?: WireTarget;
  removeTarget?: number;
}>;
export type WireTarget = Readonly<{
  targetType?: string;
  query?: Readonly<{ parent: string; structuredQuery?: WireQuery }>;
  documents?: Readonly<{ documents: readonly string[] }>;
  /** `resumeToken` or `readTime`: what the client has already. */
  resumeType?: string;
  targetId: number;
  once: boolean;
}>;
export type Page = Readonly<{ pageSize: number; pageToken: string }>;

export function parseSelector(request: Consistency): Selector {
  switch (request.consistencySelector) {
    case undefined:
      return { kind: 'strong' };
    case 'transaction':
      return { kind: 'transaction', id: request.transaction ?? new Uint8Array() };
    case 'newTransaction':
      return { kind: 'newTransaction', options: parseOptions(request.newTransaction ?? null) };
    case 'readTime':
      if (request.readTime === undefined) break;
      return { kind: 'readTime', time: fromWire(request.readTime, 'read_time') };
    default:
  }
  throw invalidArgument(`the consistency selector ${request.consistencySelector} is not known`);
}

/** Without a mode a transaction is read-write. */
export function parseOptions(options: WireOptions): TransactionOptions {
  if (options === null || options.mode === undefined) return { mode: 'readWrite', retry: undefined };
  if (options.mode === 'readWrite') {
    const retry = options.readWrite?.retryTransaction;
    return { mode: 'readWrite', retry: retry === undefined || retry.length === 0 ? undefined : retry };
  }
  if (options.mode !== 'readOnly') throw invalidArgument(`the transaction mode ${options.mode} is not known`);
  const readTime = options.readOnly?.readTime;
  return readTime ? { mode: 'readOnly', readTime: fromWire(readTime, 'read_time') } : { mode: 'readOnly' };
}

export const parseMask = (mask: WireMask): readonly FieldPath[] | undefined =>
  mask?.fieldPaths.map(parseFieldPath);

/** The document as it is answered. A mask leaves the fields that it names; `__name__` names none. */
export function toWireDocument(doc: Doc, mask: readonly FieldPath[] | undefined) {
  return {
    name: doc.name.full,
    fields: mask === undefined ? doc.fields : projectFields(doc.fields, mask),
    createTime: toWire(doc.createTime),
    updateTime: toWire(doc.updateTime),
  };
}

export const toWireTime = (time: Microseconds | undefined): WireTimestamp | null =>
  time === undefined ? null : toWire(time);
