/**
 * How a sweep goes through the streams of one state: a pass begins where the last one had to stop, and then goes on with
 * those before. So streams that cannot be read, that fail, or that take all the time keep no other from its turn.
 */
import type { ListedStream, StreamAdmin, StreamQuery } from './stream-store.ts';

/** Where the last pass stopped: the page, and the streams of it that had their turn. */
type Place = { after: string | undefined; had: Set<string> };

export type Walk = (consumer: string, isOver: () => boolean) => AsyncGenerator<ListedStream, void, void>;

/** Streams of one list. */
const PAGE = 100;

/** Several workers may share what one call answers. Rejects as `list` does. */
export function walk(store: Pick<StreamAdmin, 'list'>, query: Pick<StreamQuery, 'state' | 'forMs'>): Walk {
  const places = new Map<string, Place>();
  return async function* pass(consumer, isOver) {
    const place = places.get(consumer) ?? { after: undefined, had: new Set() };
    places.set(consumer, place);
    const mine = new Set<string>();
    let wraps = place.after !== undefined || place.had.size > 0;
    while (true) {
      const { after } = place;
      const page = await store.list(consumer, {
        ...query,
        limit: PAGE,
        ...(after !== undefined && { after }),
      });
      const named = page.streams.map((stream) => [JSON.stringify(stream.ref), stream] as const);
      const present = new Set(named.map(([name]) => name));
      // A stream that has left the page and is here again later is due again.
      for (const name of place.had) if (!present.has(name)) place.had.delete(name);
      for (const [name, stream] of named) {
        if (place.had.has(name) || mine.has(name)) continue;
        if (isOver()) return;
        place.had.add(name);
        mine.add(name);
        yield stream;
      }
      if (isOver()) return;
      place.after = page.next;
      place.had.clear();
      if (page.next !== undefined) continue;
      if (!wraps) return;
      wraps = false;
    }
  };
}
