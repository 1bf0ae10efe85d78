/**
 * What was started, to be closed in the reverse order, so that nothing is called that is already gone. Closing may be
 * asked for at any time and more than once; a part that fails to close does not keep the others open.
 */
type Closable = Readonly<{ close(): Promise<void> }>;

export type Closers = Readonly<{
  add(close: () => Promise<void>): void;
  /** Adds the part once it has started. */
  started<Part extends Closable>(part: Promise<Part>): Promise<Part>;
  /** Rejects with the first error, when everything has been closed. */
  close(): Promise<void>;
}>;

export function closers(): Closers {
  const all: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    const errors: unknown[] = [];
    for (let next = all.pop(); next !== undefined; next = all.pop()) {
      await next().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  };
  return {
    add: (close) => void all.push(close),
    async started(part) {
      const ready = await part;
      all.push(() => ready.close());
      return ready;
    },
    close() {
      closing ??= closeAll();
      return closing;
    },
  };
}
