/**
 * A first-in, first-out queue whose every operation takes constant time, whatever its length:
 * a backlog of many thousand messages must not make each delivery slower.
 */

type Link<T> = { readonly value: T; next: Link<T> | undefined };

export type LinkedQueue<T> = Readonly<{
  push(value: T): void;
  pushFront(value: T): void;
  shift(): T | undefined;
  peek(): T | undefined;
  size(): number;
}>;

export function linkedQueue<T>(): LinkedQueue<T> {
  let front: Link<T> | undefined;
  let tail: Link<T> | undefined;
  let size = 0;
  return {
    push(value) {
      const link: Link<T> = { value, next: undefined };
      if (tail === undefined) front = link;
      else tail.next = link;
      tail = link;
      size += 1;
    },
    pushFront(value) {
      front = { value, next: front };
      tail ??= front;
      size += 1;
    },
    shift() {
      const first = front;
      if (first === undefined) return undefined;
      front = first.next;
      if (front === undefined) tail = undefined;
      size -= 1;
      return first.value;
    },
    peek: () => front?.value,
    size: () => size,
  };
}
