/**
 * The queue before each document: who holds it, and who waits for it in order of arrival. A request whose
 * documents change while it waits (a query's result) keeps its place in time.
 */
import type { Owner, Request } from './lock-types.ts';
import { reaches } from './wait-graph.ts';

export type DocumentQueues = Readonly<{
  /** Puts the request into the queues of these documents, and takes it out of the ones it was in. */
  move(request: Request, documents: readonly string[]): void;
  /** Adds to the request's `holders` and `ahead` whoever stands between it and its documents. */
  block(request: Request): void;
  /** Gives the owner the documents. Whoever is in their queues waits for it from now on. */
  hold(owner: Owner, documents: readonly string[]): void;
  free(owner: Owner): void;
  held(): number;
}>;

export function documentQueues(): DocumentQueues {
  const holders = new Map<string, Owner>();
  const queues = new Map<string, Request[]>();

  const leave = (request: Request, document: string): void => {
    const queue = queues.get(document)?.filter((other) => other !== request) ?? [];
    if (queue.length === 0) queues.delete(document);
    else queues.set(document, queue);
  };
  const join = (request: Request, document: string): void => {
    const queue = queues.get(document);
    if (queue === undefined) queues.set(document, [request]);
    else queues.set(document, inArrivalOrder([...queue, request]));
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
      for (const document of request.documents) {
        const holder = holders.get(document);
        if (holder === request.owner) continue;
        if (holder !== undefined) request.holders.add(holder);
        const before = nearestAhead(queues.get(document) ?? [], request);
        if (before !== undefined) request.ahead.add(before);
      }
    },
    hold(owner, documents) {
      for (const document of documents) {
        holders.set(document, owner);
        owner.documents.add(document);
        for (const other of queues.get(document) ?? []) if (other.owner !== owner) other.holders.add(owner);
      }
    },
    free(owner) {
      for (const document of owner.documents) holders.delete(document);
      owner.documents.clear();
    },
    held: () => holders.size,
  };
}

export const inArrivalOrder = <T extends Request>(requests: readonly T[]): T[] =>
  [...requests].sort((a, b) => a.number - b.number);

/** The nearest earlier request of another owner, passing over those that wait for this one's owner. */
function nearestAhead(queue: readonly Request[], request: Request): Owner | undefined {
  for (let i = queue.indexOf(request) - 1; i >= 0; i--) {
    const owner = queue[i]?.owner;
    if (owner !== undefined && owner !== request.owner && !reaches(owner, request.owner)) return owner;
  }
  return undefined;
}
