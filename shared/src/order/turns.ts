/**
 * Turns of the streams of one process whose next number may have ended processes before. A process that dies with such a
 * number takes every number with it that it is running, and each of them counts an attempt. So one that has few attempts
 * left is started while no other such number runs: the one that kills is then the only one that is counted.
 */
export type Turns = Readonly<{
  /** Resolves when it is this stream's turn; what it resolves with ends the turn. */
  enter(): Promise<() => void>;
}>;

export function turns(): Turns {
  let last: Promise<void> = Promise.resolve();
  return {
    async enter() {
      const before = last;
      let leave = (): void => undefined;
      last = new Promise((resolve) => (leave = resolve));
      await before;
      return leave;
    },
  };
}
