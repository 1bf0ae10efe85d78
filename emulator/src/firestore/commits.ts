/**
 * The writing methods: Commit (all or nothing), BatchWrite (each write by itself), BeginTransaction, Rollback.
 */
import { status } from '@grpc/grpc-js';
import { invalidArgument, StatusError } from '../grpc-server.ts';
import type { Committed, Database } from './database.ts';
import { parseDatabase } from './names.ts';
import {
  type BatchWriteRequest,
  type BeginRequest,
  type CommitRequest,
  parseOptions,
  type RollbackRequest,
  toWireTime,
} from './requests.ts';
import type { WireWrite } from './writes.ts';

type DatabaseNamed = (name: string) => Database;

/** Bytes of one request that writes (https://firebase.google.com/docs/firestore/quotas, 10 MiB). */
const MAX_REQUEST_BYTES = 10 * 1024 * 1024;

/** Throws INVALID_ARGUMENT for a request of more bytes than the service takes. */
export function checkRequestSize(bytes: number): void {
  if (bytes > MAX_REQUEST_BYTES) {
    throw invalidArgument(
      `Request payload size exceeds the limit: ${MAX_REQUEST_BYTES} bytes (it has ${bytes})`,
    );
  }
}

export async function commit(databases: DatabaseNamed, request: CommitRequest, signal: AbortSignal) {
  const transaction = request.transaction.length === 0 ? undefined : request.transaction;
  const database = databases(parseDatabase(request.database));
  const committed = await database.commit(request.writes, transaction, signal);
  return { writeResults: writeResults(committed), commitTime: toWireTime(committed.commitTime) };
}

export async function batchWrite(databases: DatabaseNamed, request: BatchWriteRequest, signal: AbortSignal) {
  const database = databases(parseDatabase(request.database));
  const names = request.writes.map(nameOf);
  const twice = names.find((name, i) => name !== undefined && names.indexOf(name) !== i);
  if (twice !== undefined) {
    throw invalidArgument(`a BatchWrite may write a document once only; it writes ${twice} twice`);
  }
  const outcomes = await Promise.all(request.writes.map((write) => writeOne(database, write, signal)));
  return {
    writeResults: outcomes.map(({ result }) => result),
    status: outcomes.map(({ code, message }) => ({ code, message })),
  };
}

export function beginTransaction(databases: DatabaseNamed, request: BeginRequest) {
  const options = parseOptions(request.options);
  return { transaction: databases(parseDatabase(request.database)).begin(options) };
}

export function rollback(databases: DatabaseNamed, request: RollbackRequest) {
  databases(parseDatabase(request.database)).rollback(request.transaction);
  return {};
}

async function writeOne(database: Database, write: WireWrite, signal: AbortSignal) {
  try {
    const [result] = writeResults(await database.commit([write], undefined, signal));
    return { result, code: status.OK, message: '' };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { result: { updateTime: null, transformResults: [] }, code: error.code, message: error.message };
  }
}

const writeResults = ({ results }: Committed) =>
  results.map(({ updateTime, transformResults }) => ({
    updateTime: toWireTime(updateTime),
    transformResults,
  }));

const nameOf = (write: WireWrite): string | undefined =>
  write.update?.name ?? write.delete ?? write.transform?.document;
