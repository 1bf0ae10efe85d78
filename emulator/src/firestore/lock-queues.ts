/**
 * The queue before each document: the owners that hold it, and those that wait for it in order of arrival. Reads share a document with
 * each other; a change waits for all of them. A read waits behind earlier changes alone, so that none of them starves. A
 * request whose documents change while it waits (a query's result) keeps its place in time.
 */
import type { Owner, Request } from './lock-types.ts';
import { reachersOf } from './wait-graph.ts';

export type DocumentQueues = Readonly<{
  /** Puts the request into the queues of these documents, and takes it out of the ones it was in. */
  move(request: Request, documents: readonly string[]): void;
  /** Adds to the request's `holders` and `ahead` each owner that stands between it and its documents. */
  block(request: Request): void;
  /** Gives the owner a share of the documents. An owner that waits to change them waits for it from now on. */
  hold(owner: Owner, documents: readonly string[]): void;
  free(owner: Owner): void;
  /** Shares that are held. */
  held(): number;
}>;

/** By number of arrival; `changes` are those of `all` that want the document for themselves. */
type Queue = Readonly<{ all: Request[]; changes: Request[] }>;

export function documentQueues(): DocumentQueues {
  const holders = new Map<string, Set<Owner>>();
  const queues = new Map<string, Queue>();
  let shares = 0;

  const leave = (request: Request, document: string): void => {
    const queue = queues.get(document);
    if (queue === undefined) return;
    remove(queue.all, request);
    if (request.isChange) remove(queue.changes, request);
    if (queue.all.length === 0) queues.delete(document);
  };
  const join = (request: Request, document: string): void => {
    const queue = queues.get(document) ?? { all: [], changes: [] };
    queues.set(document, queue);
    insert(queue.all, request);
    if (request.isChange) insert(queue.changes, request);
  };

  return {
    move(request, documents) {
      if (documents === request.documents) return;
      const wanted = new Set(documents);
      const current = new Set(request.documents);
      for (const document of current) if (!wanted.has(document)) leave(request, document);
      for (const document of wanted) if (!current.has(document)) join(request, document);
      request.documents = documents;
    },
    block(request) {
      const waitsForIt = reachersOf(request.owner);
      for (const document of request.documents) {
        for (const holder of holders.get(document) ?? []) {
          if (holder === request.owner || holder === request.owner.predecessor) continue;
          if (request.isChange || holder.isExclusive) request.holders.add(holder);
        }
        const queue = queues.get(document);
        const before = nearestAhead(
          (request.isChange ? queue?.all : queue?.changes) ?? [],
          request,
          waitsForIt,
        );
        if (before !== undefined) request.ahead.add(before);
      }
    },
    hold(owner, documents) {
      for (const document of documents) {
        const sharing = holders.get(document) ?? new Set();
        holders.set(document, sharing);
        if (!sharing.has(owner)) shares += 1;
        sharing.add(owner);
        owner.documents.add(document);
        const { all = [], changes = [] } = queues.get(document) ?? {};
        for (const other of owner.isExclusive ? all : changes) {
          if (other.owner !== owner) other.holders.add(owner);
        }
      }
    },
    free(owner) {
      for (const document of owner.documents) {
        const sharing = holders.get(document);
        if (sharing?.delete(owner) === true) shares -= 1;
        if (sharing?.size === 0) holders.delete(document);
      }
      owner.documents.clear();
    },
    held: () => shares,
  };
}

/** The nearest earlier request of another owner, passing over those that wait for this one's owner. */
function nearestAhead(
  queue: readonly Request[],
  request: Request,
  waitsForIt: (owner: Owner) => boolean,
): Owner | undefined {
  for (let i = placeOf(queue, request.number) - 1; i >= 0; i--) {
    const owner = queue[i]?.owner;
    if (owner !== undefined && owner !== request.owner && !waitsForIt(owner)) return owner;
  }
  return undefined;
}

/** The index of the first whose number is not smaller. */
function placeOf(queue: readonly Request[], number: number): number {
  let [low, high] = [0, queue.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((queue[middle]?.number ?? Number.POSITIVE_INFINITY) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert(queue: Request[], request: Request): void {
  queue.splice(placeOf(queue, request.number), 0, request);
}

function remove(queue: Request[], request: Request): void {
  const place = placeOf(queue, request.number);
  if (queue[place] === request) queue.splice(place, 1);
}
