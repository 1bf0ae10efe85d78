/**
 * What Firestore bills for one call, read off its bytes: each document that a read or a query answered and each that is
 * missing (a query at least one read), each document written, each deleted. A commit that the server refuses is counted
 * like any other, so a figure is never too small. A method that is not known here is an error, never free.
 *
 * Only the top-level fields of a few messages are needed, so the messages are not decoded: the numbers below are those of
 * https://github.com/googleapis/googleapis/blob/master/google/firestore/v1/firestore.proto
 */
import { fieldsIn, messagesOf } from './wire.ts';

export type Operations = Readonly<{ reads: number; writes: number; deletes: number }>;

export const NONE: Operations = { reads: 0, writes: 0, deletes: 0 };

export type Call = Readonly<{
  sent(bytes: Buffer): void;
  answered(bytes: Buffer): void;
  /** Once, when the call has ended. */
  operations(): Operations;
}>;

type Method = Readonly<{
  /** Of one request message. */
  request?: (message: Buffer) => Operations;
  /** Documents in one response message. */
  response?: (message: Buffer) => number;
  /** Reads that are billed where nothing was found. */
  leastReads?: number;
}>;

const has = (message: Buffer, ...numbers: readonly number[]): number =>
  [...fieldsIn(message)].some(({ number }) => numbers.includes(number)) ? 1 : 0;

const FOUND = 1;
const MISSING = 2;
const DOCUMENT = 1;
const WRITES = 2;
const WRITE = { update: 1, delete: 2, verify: 5, transform: 6 } as const;

const written = (message: Buffer): Operations => {
  let { reads, writes, deletes } = NONE;
  for (const { number, value } of fieldsIn(message)) {
    if (number !== WRITES) continue;
    if (has(value, WRITE.delete) === 1) deletes += 1;
    else if (has(value, WRITE.verify) === 1) reads += 1;
    else if (has(value, WRITE.update, WRITE.transform) === 1) writes += 1;
    else throw new Error('a write of an unknown kind');
  }
  return { reads, writes, deletes };
};

const METHODS: Readonly<Record<string, Method>> = {
  BatchGetDocuments: { response: (message) => has(message, FOUND, MISSING) },
  RunQuery: { response: (message) => has(message, DOCUMENT), leastReads: 1 },
  // One read for up to 1,000 index entries; more are not counted here.
  RunAggregationQuery: { leastReads: 1 },
  Commit: { request: written },
  BatchWrite: { request: written },
  BeginTransaction: {},
  Rollback: {},
};

/** `path` as in `/google.firestore.v1.Firestore/Commit`. Throws for a method whose price is not known. */
export function billed(path: string): Call {
  const name = path.split('/').at(-1) ?? '';
  const method = METHODS[name];
  if (method === undefined) throw new Error(`the cost of a call of ${path} is not known`);
  const [requests, responses] = [messagesOf(), messagesOf()];
  let sum = NONE;
  let found = 0;
  return {
    sent(bytes) {
      for (const message of requests(bytes)) sum = added(sum, method.request?.(message) ?? NONE);
    },
    answered(bytes) {
      for (const message of responses(bytes)) found += method.response?.(message) ?? 0;
    },
    operations: () => added(sum, { ...NONE, reads: Math.max(found, method.leastReads ?? 0) }),
  };
}

export const added = (left: Operations, right: Operations): Operations => ({
  reads: left.reads + right.reads,
  writes: left.writes + right.writes,
  deletes: left.deletes + right.deletes,
});

export const total = ({ reads, writes, deletes }: Operations): number => reads + writes + deletes;
