/**
 * Runs the cases of a suite, each in a world of its own, and keeps the result of each. A case that fails, or does not
 * end within its limit, is an outcome like any other: the run goes on.
 */
import type { Case, Suite, World } from './case.ts';

export type Outcome = Readonly<{
  feature: string;
  title: string;
  source: string;
  /** `not asked` has the reason in `seen`; `refused` is what a case says that this server refuses, and it did. */
  verdict: 'as documented' | 'refused' | 'differs' | 'not asked';
  /** One line of what the server did instead; empty where it did as documented. */
  seen: string;
}>;

/** Longer than two ack deadlines of the shortest kind, which Google's emulator waits for in real time. */
const CASE_LIMIT_MS = 60_000;
/** Google's emulators wait in real time: their cases wait side by side. */
const OFFICIAL_AT_ONCE = 8;
const LONGEST_LINE = 200;

export async function runEmbedded<Own extends World>(suite: Suite<Own>): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const each of suite.cases) {
    const { refusedHere } = each;
    const outcome = await outcomeOf({ ...each, run: refusedHere ?? each.run }, () => suite.embedded());
    const refused = refusedHere !== undefined && outcome.verdict === 'as documented';
    outcomes.push(refused ? { ...outcome, verdict: 'refused' } : outcome);
  }
  return outcomes;
}

/** Undefined where the suite has no emulator of Google's to ask. */
export async function runOfficial<Own extends World>(
  suite: Suite<Own>,
  address: string,
): Promise<readonly Outcome[] | undefined> {
  const { official, cases } = suite;
  if (official === undefined) return undefined;
  const outcomes = new Map<Case<Own>, Outcome>();
  const queue = cases.entries();
  const work = async (): Promise<void> => {
    for (const [index, each] of queue) {
      const open = (): Promise<Own> => official(address, `conformance-${index}`);
      outcomes.set(each, each.embeddedOnly === undefined ? await outcomeOf(each, open) : notAsked(each));
    }
  };
  await Promise.all(Array.from({ length: OFFICIAL_AT_ONCE }, work));
  return cases.flatMap((each) => outcomes.get(each) ?? []);
}

async function outcomeOf<Own extends World>(each: Case<Own>, open: () => Promise<Own>): Promise<Outcome> {
  const { feature, title, source } = each;
  let world: Own | undefined;
  try {
    world = await open();
    await limited(each.run(world));
    return { feature, title, source, verdict: 'as documented', seen: '' };
  } catch (error) {
    return { feature, title, source, verdict: 'differs', seen: oneLine(error) };
  } finally {
    await world?.close();
  }
}

function notAsked<Own>({ feature, title, source, embeddedOnly = '' }: Case<Own>): Outcome {
  return { feature, title, source, verdict: 'not asked', seen: embeddedOnly };
}

async function limited(run: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${CASE_LIMIT_MS / 1_000} s`)), CASE_LIMIT_MS);
  });
  try {
    await Promise.race([run, late]);
  } finally {
    clearTimeout(timer);
  }
}

function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text
    .split('\n')
    .map((part) => part.trim())
    .filter(Boolean)
    .join(' ');
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
}
