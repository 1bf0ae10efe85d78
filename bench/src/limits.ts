/** The figures that have a limit: each is a line that says whether it is met. */

export type Limits = Readonly<{
  atMost(what: string, value: number, limit: number): void;
  atLeast(what: string, value: number, limit: number): void;
  missed(): readonly string[];
}>;

export function limits(print: (line: string) => void): Limits {
  const missed: string[] = [];
  const judge = (what: string, value: number, word: string, limit: number, isMet: boolean): void => {
    print(`${isMet ? 'met   ' : 'MISSED'} ${what}: ${shown(value)} (the limit is ${word} ${shown(limit)})`);
    if (!isMet) missed.push(what);
  };
  return {
    atMost: (what, value, limit) => judge(what, value, 'at most', limit, value <= limit),
    atLeast: (what, value, limit) => judge(what, value, 'at least', limit, value >= limit),
    missed: () => missed,
  };
}

const shown = (value: number): string => value.toFixed(Math.abs(value) < 20 ? 2 : 0);
