/**
 * Places at which processes die: by the name of the request, or by the line of the source that waits for it. A
 * count of deaths says as much as its list of places does, so that list is read from the sources.
 */
import { readFileSync } from 'node:fs';
import { getCallSites } from 'node:util';
import type { When } from './process.ts';

/** A place by the name of its request, as text: `before commit`. */
export type Named<Request extends string> = `${When} ${Request}`;

/** Before and after each request. */
export const placesOf = <Request extends string>(requests: readonly Request[]): readonly Named<Request>[] =>
  requests.flatMap((request): Named<Request>[] => [`before ${request}`, `after ${request}`]);

/** A place in a source that a pattern matches. */
export type Matched = Readonly<{
  file: string;
  /** From 1. */
  line: number;
  match: RegExpMatchArray;
  /** The whole line. */
  text: string;
  /** The lines above it. */
  above: readonly string[];
}>;

/** What a global pattern matches in these files of a folder, comments aside. */
export function matchesIn(folder: URL, files: readonly string[], pattern: RegExp): readonly Matched[] {
  return files.flatMap((file) => {
    const lines = readFileSync(new URL(file, folder), 'utf8').split('\n');
    return lines.flatMap((text, index) => {
      if (/^\s*(?:\/?\*|\/\/)/.test(text)) return [];
      const above = lines.slice(0, index);
      return [...text.matchAll(pattern)].map((match) => ({ file, line: index + 1, match, text, above }));
    });
  });
}

/**
 * `file.ts:line` of the innermost frame whose file the pattern matches; its first group is the name of the file. Looks at
 * `frames` frames, each of which costs time; frames before an await are not there.
 */
export function callerIn(files: RegExp, frames = 24): string | undefined {
  for (const { scriptName, lineNumber } of getCallSites(frames + 1).slice(1)) {
    const file = files.exec(scriptName)?.[1];
    if (file !== undefined) return `${file}:${lineNumber}`;
  }
  return undefined;
}

/** The process that passes the place as the `hit`-th (from 1) dies there. */
export type Death<Place extends string> = Readonly<{ place: Place; hit: number }>;

export type Deaths<Place extends string> = Readonly<{
  /** Whether the process that passes here dies. Each call counts as one pass. */
  dies(place: Place): boolean;
  /** Places at which a process is still to die. */
  open(): readonly Place[];
}>;

/** `died` is called for each death. */
export function plannedDeaths<Place extends string>(
  deaths: readonly Death<Place>[],
  died: (place: Place) => void = () => {},
): Deaths<Place> {
  const due = deaths.map((death) => ({ ...death }));
  return {
    dies(place) {
      const here = due.filter((one) => one.place === place && one.hit > 0);
      for (const one of here) one.hit -= 1;
      if (!here.some(({ hit }) => hit === 0)) return false;
      died(place);
      return true;
    },
    open: () => due.filter(({ hit }) => hit > 0).map(({ place }) => place),
  };
}

/** Counts deaths by place. */
export type Tally = Readonly<{
  add(place: string): void;
  of(place: string): number;
  /** Every place that was added. */
  places(): readonly string[];
}>;

export function newTally(): Tally {
  const counts = new Map<string, number>();
  const of = (place: string): number => counts.get(place) ?? 0;
  return { of, add: (place) => void counts.set(place, of(place) + 1), places: () => [...counts.keys()] };
}
