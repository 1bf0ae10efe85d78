/**
 * The gRPC side of google.firestore.v1.Firestore: turns calls into methods and errors into statuses. A call
 * whose client goes away aborts its signal, which takes it out of every queue. Methods that are not listed
 * here are answered UNIMPLEMENTED.
 */
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { StatusError, unimplemented } from '../grpc-server.ts';
import type { Abandoned, SeenCall } from './abandoned.ts';
import { batchWrite, beginTransaction, checkRequestSize, commit, rollback } from './commits.ts';
import type { Database } from './database.ts';
import { createDocument, deleteDocument, updateDocument } from './document-writes.ts';
import type { IndexChecks } from './index-check.ts';
import { listen, type OpenStreams } from './listen.ts';
import { listCollectionIds, listDocuments } from './lists.ts';
import { partitionQuery } from './partitions.ts';
import { runAggregationQuery, runQueryMethod } from './queries.ts';
import { batchGetDocuments, getDocument } from './reads.ts';

type Edge = Readonly<{ follow: Abandoned; log: (line: string) => void }>;

type Method<Request, Answer> = (request: Request, signal: AbortSignal) => Promise<Answer> | Answer;

export function firestoreService(
  databases: (name: string) => Database,
  checks: IndexChecks,
  follow: Abandoned,
  log: (line: string) => void,
  streams: OpenStreams,
): UntypedServiceImplementation {
  const edge: Edge = { follow, log };
  const bind =
    <Request, Answer>(
      method: (databases: (name: string) => Database, request: Request, signal: AbortSignal) => Answer,
    ) =>
    (request: Request, signal: AbortSignal): Answer =>
      method(databases, request, signal);
  return {
    getDocument: unary(bind(getDocument), edge),
    createDocument: unary(sizeChecked(bind(createDocument)), edge),
    updateDocument: unary(sizeChecked(bind(updateDocument)), edge),
    deleteDocument: unary(bind(deleteDocument), edge),
    batchGetDocuments: streaming(bind(batchGetDocuments), edge),
    runQuery: streaming(bind(runQueryMethod(checks)), edge),
    runAggregationQuery: streaming(bind(runAggregationQuery(checks)), edge),
    listDocuments: unary(bind(listDocuments(checks)), edge),
    partitionQuery: unary(bind(partitionQuery), edge),
    listCollectionIds: unary(bind(listCollectionIds), edge),
    listen: listen(databases, checks, (error, method) => toStatus(error, method, log), streams),
    beginTransaction: unary(bind(beginTransaction), edge),
    rollback: unary(bind(rollback), edge),
    commit: unary(sizeChecked(bind(commit)), edge),
    batchWrite: unary(sizeChecked(bind(batchWrite)), edge),
    // A stream that is refused here is refused at once: see `streaming`.
    executePipeline: streaming(refuse('ExecutePipeline'), edge),
  };
}

const refuse = (name: string) => (): never => {
  throw unimplemented(`${name} is not implemented`);
};

const requestBytes = new WeakMap<object, number>();

/** The definition, with the size of each request of these methods kept for the check of its limit. */
export function measured(definition: ServiceDefinition, methods: readonly string[]): ServiceDefinition {
  const copy: Record<string, ServiceDefinition[string]> = { ...definition };
  for (const name of methods) {
    const method = definition[name];
    if (method === undefined) throw new Error(`the service has no method ${name}`);
    const requestDeserialize = (bytes: Buffer): unknown => {
      const request: unknown = method.requestDeserialize(bytes);
      if (typeof request === 'object' && request !== null) requestBytes.set(request, bytes.length);
      return request;
    };
    copy[name] = { ...method, requestDeserialize };
  }
  return copy;
}

function sizeChecked<Request extends object, Answer>(
  method: Method<Request, Answer>,
): Method<Request, Answer> {
  return (request, signal) => {
    checkRequestSize(requestBytes.get(request) ?? 0);
    return method(request, signal);
  };
}

function unary<Request, Answer>(
  method: Method<Request, Answer>,
  { follow, log }: Edge,
): handleUnaryCall<Request, Answer> {
  return (call, callback) => {
    const answer = async (): Promise<void> => {
      try {
        const signal = cancellationOf(call);
        callback(null, await follow.during(seen(call), async () => method(call.request, signal)));
      } catch (error) {
        callback(toStatus(error, call.getPath(), log));
      }
    };
    void answer();
  };
}

function streaming<Request, Answer>(
  method: Method<Request, readonly Answer[]>,
  { follow, log }: Edge,
): handleServerStreamingCall<Request, Answer> {
  return (call) => {
    const answer = async (): Promise<void> => {
      try {
        const signal = cancellationOf(call);
        const answers = await follow.during(seen(call), async () => method(call.request, signal));
        for (const message of answers) call.write(message);
        call.end();
      } catch (error) {
        // With headers first the client takes the error as an answer. Without, it takes it for a connection
        // that broke, and google-gax tries twice more, after seconds, before its caller hears of it.
        call.sendMetadata(new Metadata());
        call.emit('error', toStatus(error, call.getPath(), log));
      }
    };
    void answer();
  };
}

const seen = (call: AnyCall): SeenCall => ({
  peer: call.getPeer(),
  method: call.getPath(),
  request: call.request,
});

type AnyCall = Readonly<{ request: unknown; getPeer(): string; getPath(): string }>;

function cancellationOf<Request, Answer>(
  call: ServerUnaryCall<Request, Answer> | ServerWritableStream<Request, Answer>,
): AbortSignal {
  const controller = new AbortController();
  if (call.cancelled) controller.abort();
  else call.once('cancelled', () => controller.abort());
  return controller.signal;
}

function toStatus(error: unknown, method: string, log: (line: string) => void): StatusError {
  if (error instanceof StatusError) return error;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  log(`firestore: ${method} failed: ${text}`);
  return new StatusError(status.INTERNAL, error instanceof Error ? error.message : String(error));
}
