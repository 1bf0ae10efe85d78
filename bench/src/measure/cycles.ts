/**
 * The cycles of a graph: its strongly connected parts of more than one node, and nodes that name themselves (Tarjan).
 */
export function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const found: string[][] = [];

  function visit(node: string): number {
    const own = order.size;
    order.set(node, own);
    lowest.set(node, own);
    open.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!graph.has(next)) continue;
      if (!order.has(next)) lower(node, visit(next));
      else if (open.includes(next)) lower(node, order.get(next) ?? own);
    }
    if (lowest.get(node) === own) {
      const part = open.splice(open.indexOf(node));
      if (part.length > 1 || (graph.get(node) ?? []).includes(node)) found.push(part.toSorted());
    }
    return lowest.get(node) ?? own;
  }
  function lower(node: string, to: number): void {
    lowest.set(node, Math.min(lowest.get(node) ?? to, to));
  }

  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return found;
}
