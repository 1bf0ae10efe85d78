/**
 * A priority queue (binary heap) of items that know their place in it, so that adding, taking the first and removing
 * any one item cost O(log n). Items with the same due time leave in the order of `sequence`.
 */

export type HeapItem = {
  /** Milliseconds since the epoch. Must not change while the item is in a heap. */
  dueMs: number;
  readonly sequence: number;
  /** The place in the heap, -1 when in none. Written by the heap only. */
  place: number;
};

export type Heap<T extends HeapItem> = Readonly<{
  add(item: T): void;
  first(): T | undefined;
  /** Does nothing when the item is in no heap. */
  remove(item: T): void;
  clear(): void;
}>;

export function createHeap<T extends HeapItem>(): Heap<T> {
  const items: T[] = [];

  const put = (item: T, place: number): void => {
    items[place] = item;
    item.place = place;
  };

  const rise = (item: T, from: number): void => {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = items[above];
      if (parent === undefined || !isBefore(item, parent)) break;
      put(parent, place);
      place = above;
    }
    put(item, place);
  };

  const sink = (item: T, from: number): void => {
    let place = from;
    for (;;) {
      const left = items[2 * place + 1];
      const right = items[2 * place + 2];
      const child = right !== undefined && left !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, item)) break;
      const next = child.place;
      put(child, place);
      place = next;
    }
    put(item, place);
  };

  return {
    add: (item) => rise(item, items.length),
    first: () => items[0],
    remove(item) {
      const place = item.place;
      if (place === -1) return;
      item.place = -1;
      const last = items.pop();
      if (last === undefined || last === item) return;
      sink(last, place);
      if (last.place === place) rise(last, place);
    },
    clear() {
      for (const item of items) item.place = -1;
      items.length = 0;
    },
  };
}

function isBefore(a: HeapItem, b: HeapItem): boolean {
  return a.dueMs === b.dueMs ? a.sequence < b.sequence : a.dueMs < b.dueMs;
}
