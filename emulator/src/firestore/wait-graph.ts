/**
 * Which owner waits for which, and the end of deadlocks. An owner waits for the owners that its requests are blocked by.
 * A cycle that rests on mere precedence in a queue is undone by going around; one of held locks only ends with
 * the youngest owner in it: the oldest never gives way, so some work always finishes.
 */
import type { Owner, Request } from './lock-types.ts';

export type Resolve = Readonly<{
  /** Tries a request again, which makes it pass over requests that wait for its own owner. */
  retry(request: Request): void;
  abort(owner: Owner): void;
}>;

/**
 * Whether an owner waits, directly or through others, for `to`. What one question has found serves the next, so that
 * all of them together look at each owner once; it holds until anything changes.
 */
export function reachersOf(to: Owner): (from: Owner) => boolean {
  // The usual case at no cost: no owner waits for one that holds nothing and stands in no other queue.
  if (!to.hasHeld && to.requests.size <= 1) return () => false;
  const known = new Map<Owner, boolean>([[to, true]]);
  return (from) => {
    const seen = known.get(from);
    if (seen !== undefined) return seen;
    const cameFrom = new Map<Owner, Owner | undefined>([[from, undefined]]);
    let found: Owner | undefined;
    const queue: Owner[] = [from];
    for (let next = queue.pop(); next !== undefined && found === undefined; next = queue.pop()) {
      for (const { to: other } of stepsFrom(next)) {
        if (known.get(other) === true) {
          found = next;
          break;
        }
        if (known.has(other) || cameFrom.has(other)) continue;
        cameFrom.set(other, next);
        queue.push(other);
      }
    }
    // Either all that was looked at leads nowhere, or those on the way that was found lead there.
    if (found === undefined) for (const owner of cameFrom.keys()) known.set(owner, false);
    for (let owner = found; owner !== undefined; owner = cameFrom.get(owner)) known.set(owner, true);
    return found !== undefined;
  };
}

/** Resolves every cycle that goes through the request's owner. */
export function breakCycle(request: Request, resolve: Resolve): void {
  const retried = new Set<Request>();
  while (!request.settled) {
    const cycle = cycleThrough(request.owner);
    if (cycle === undefined) return;
    const soft = cycle.find(({ edge, to }) => !edge.holders.has(to) && !retried.has(edge))?.edge;
    if (soft !== undefined) {
      retried.add(soft);
      resolve.retry(soft);
    } else {
      resolve.abort(cycle.map(({ edge }) => edge.owner).reduce((a, b) => (b.age > a.age ? b : a)));
    }
  }
}

type Step = Readonly<{ edge: Request; to: Owner }>;

function cycleThrough(owner: Owner): readonly Step[] | undefined {
  for (const step of stepsFrom(owner)) {
    const rest = step.to === owner ? [] : pathBetween(step.to, owner);
    if (rest !== undefined) return [step, ...rest];
  }
  return undefined;
}

/** Breadth first, so the path is a shortest one. */
function pathBetween(from: Owner, to: Owner): readonly Step[] | undefined {
  if (from.requests.size === 0) return undefined;
  const cameBy = new Map<Owner, Step>();
  const queue: Owner[] = [from];
  for (const node of queue) {
    for (const step of stepsFrom(node)) {
      if (step.to === from || cameBy.has(step.to)) continue;
      cameBy.set(step.to, step);
      if (step.to === to) return trace(cameBy, from, to);
      queue.push(step.to);
    }
  }
  return undefined;
}

function trace(cameBy: ReadonlyMap<Owner, Step>, from: Owner, to: Owner): readonly Step[] {
  const path: Step[] = [];
  for (let node = to; node !== from; ) {
    const step = cameBy.get(node);
    if (step === undefined) break;
    path.unshift(step);
    node = step.edge.owner;
  }
  return path;
}

function* stepsFrom(node: Owner): Iterable<Step> {
  for (const edge of node.requests) {
    for (const to of edge.holders) yield { edge, to };
    for (const to of edge.ahead) if (!edge.holders.has(to)) yield { edge, to };
  }
}
