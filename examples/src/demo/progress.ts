/**
 * Says on standard error what the demo is doing: on a terminal one line that changes, elsewhere a line now and then.
 */

type Output = Readonly<{ isTTY?: boolean; columns?: number; write(text: string): unknown }>;

export type Progress = Readonly<{
  /** The present state. Cheap to call often. */
  show(text: string): void;
  /** Takes the changing line away. */
  close(): void;
}>;

/** Often enough to see that it lives, seldom enough for a log file. */
const EVERY_MS = 3_000;

export function progressOn(output: Output, monotonic: () => number): Progress {
  let last = -Infinity;
  let shown = '';
  if (output.isTTY !== true) {
    return {
      show(text) {
        if (monotonic() - last < EVERY_MS || text === shown) return;
        last = monotonic();
        shown = text;
        output.write(`${text}\n`);
      },
      close() {},
    };
  }
  return {
    show(text) {
      if (text === shown) return;
      shown = text;
      // A line that wraps could not be taken back.
      output.write(`\r\u001B[K${text.slice(0, (output.columns || 80) - 1)}`);
    },
    close() {
      if (shown !== '') output.write('\r\u001B[K');
      shown = '';
    },
  };
}
