/**
 * The report for people: published and delivered side by side, then what was broken, then one line of verdict; and
 * the same figures as one line of JSON.
 */
import type { Counts, Report } from './check.ts';

export type RunFacts = Readonly<{
  seconds: number;
  /** Absent when the functions were not killed (a file of one event). */
  killedAfter?: number;
  /** Milliseconds from the kill until they served again. */
  backAfterMs?: number;
}>;

const LEGEND = [
  'sent: messages published · distinct: different ones · again: repeated on purpose',
  'ran: the subscribers’ handlers ran · twice: for one message · max late: after the',
  'due time, while the functions were down included · dead: refused, with a reason',
  'A dash: no such promise on this topic.',
];

/** More lines than a reader reads are left out; the counts say how many there are. */
const MOST_LINES = 20;

export function renderReport(report: Report, facts: RunFacts): string {
  const lines = [...renderTable(report), ...LEGEND, ''];
  if (facts.killedAfter !== undefined && facts.backAfterMs !== undefined) {
    lines.push(
      `The functions were killed (SIGKILL) after ${facts.killedAfter} messages and served again ${seconds(facts.backAfterMs)} later.`,
      'What was published meanwhile waited in Pub/Sub.',
    );
  }
  if (report.total.repeats > 0) {
    lines.push(
      `${report.total.repeats} extra copies reached the subscribers: a process that dies between a publish and its record`,
      'publishes again, under the same dedupId. The subscribers use `once` too, and ran their handlers for none of them.',
    );
  }
  if (report.total.foreseen > 0) {
    lines.push(
      `Published more than once to a topic without "once", recognised by dedupId: ${report.total.foreseen}`,
    );
  }
  lines.push(...section('Dead letters, with their reasons:', report.deadLetters));
  lines.push(
    ...section(
      'Broken:',
      report.violations.map(({ kind, text }) => `${kind}: ${text}`),
    ),
  );
  return [...lines, '', renderVerdict(report, facts)].join('\n');
}

/** The figures that a script reads. */
export function renderJson({ total }: Report, facts: RunFacts): string {
  return JSON.stringify({
    published: total.published,
    delivered: total.delivered,
    duplicatesPublished: total.duplicatesPublished,
    duplicatesDelivered: total.duplicatesDelivered,
    early: total.early,
    maxLatenessMs: total.maxLatenessMs,
    outOfOrder: total.outOfOrder,
    lost: total.lost,
    seconds: Math.round(facts.seconds * 10) / 10,
  });
}

function renderTable({ rows, total }: Report): string[] {
  const header = [
    '',
    'sent',
    'distinct',
    'again',
    '│',
    'ran',
    'twice',
    'early',
    'max late',
    'disorder',
    'lost',
    'dead',
  ];
  const cells = [
    header,
    ...rows.map((row) => [row.lane.guarantee, ...cellsOf(row, row.lane.later, row.lane.inOrder)]),
    ['all', ...cellsOf(total, true, true)],
  ];
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const rendered = cells.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join(' '),
  );
  const rule = '─'.repeat(rendered[0]?.length ?? 0);
  return [...rendered.slice(0, 1), rule, ...rendered.slice(1, -1), rule, ...rendered.slice(-1)];
}

/** A dash where the lane makes no such promise. */
function cellsOf(counts: Counts, later: boolean, inOrder: boolean): string[] {
  return [
    String(counts.published),
    String(counts.distinct),
    String(counts.duplicatesPublished),
    '│',
    String(counts.delivered),
    String(counts.duplicatesDelivered),
    later ? String(counts.early) : '-',
    later ? `${counts.maxLatenessMs} ms` : '-',
    inOrder ? String(counts.outOfOrder) : '-',
    String(counts.lost),
    String(counts.deadLettered),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const more = lines.length - MOST_LINES;
  return [
    '',
    title,
    ...lines.slice(0, MOST_LINES).map((line) => `  ${line}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function renderVerdict({ total, held, violations }: Report, facts: RunFacts): string {
  const took = `in ${facts.seconds.toFixed(1)} s`;
  if (held) {
    const dead = total.deadLettered === 0 ? '' : ` (${total.deadLettered} refused, in the dead letters)`;
    return `HELD: of ${total.distinct} different messages, sent ${total.published} times in all, ${total.delivered} took effect, each once${dead}; none early, none out of order, none lost, ${took}`;
  }
  return `BROKEN: ${violations.length} ${violations.length === 1 ? 'violation' : 'violations'} (${total.duplicatesDelivered} delivered twice, ${total.early} early, ${total.outOfOrder} out of order, ${total.lost} lost), ${took}`;
}

const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`;
