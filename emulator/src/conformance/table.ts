/** The outcomes of a run as `emulator/conformance.md`. */
import type { Outcome } from './run.ts';

export type Section = Readonly<{
  service: string;
  embedded: readonly Outcome[];
  /** Undefined where there is no emulator of Google's. */
  official: readonly Outcome[] | undefined;
}>;

const INTRODUCTION = `# Conformance

Written by \`npm run conformance\`, which runs every case below against the embedded servers and, where there is one, Google's own emulator. A case is one sentence of the documentation, linked in its row. ✓ means that the server does as documented; “refused” that the service does it and this server refuses it with an error, which does not count as documented; a number leads to what it does instead, below its table; – means that it was not asked, or that there is no such emulator.`;

export function conformanceTable(sections: readonly Section[], versions: string): string {
  const parts = [INTRODUCTION, versions, summary(sections), ...sections.map(sectionTable)];
  return `${parts.join('\n\n')}\n`;
}

function summary(sections: readonly Section[]): string {
  const rows = sections.map(
    ({ service, embedded, official }) =>
      `| ${service} | ${embedded.length} | ${asDocumented(embedded)} | ${refused(embedded)} | ${official === undefined ? '–' : asDocumented(official)} |`,
  );
  return [
    '| service | cases | embedded, as documented | embedded, refused | Google’s emulator, as documented |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

/** What is refused by intention is counted beside: it is neither. */
export const asDocumented = (outcomes: readonly Outcome[]): string => {
  const asked = outcomes.filter(({ verdict }) => verdict === 'as documented' || verdict === 'differs');
  return `${asked.filter(({ verdict }) => verdict === 'as documented').length} of ${asked.length}`;
};
export const refused = (outcomes: readonly Outcome[]): number =>
  outcomes.filter(({ verdict }) => verdict === 'refused').length;

function sectionTable({ service, embedded, official }: Section): string {
  const notes: string[] = [];
  const mark = (outcome: Outcome | undefined, server: string): string => {
    if (outcome === undefined) return '–';
    if (outcome.verdict === 'as documented') return '✓';
    if (outcome.verdict === 'refused') return 'refused';
    notes.push(`${notes.length + 1}. ${server}: ${escaped(outcome.seen)}`);
    return outcome.verdict === 'differs' ? `(${notes.length})` : `– (${notes.length})`;
  };
  const lines = [`## ${service}`];
  let feature = '';
  embedded.forEach((own, index) => {
    if (own.feature !== feature) {
      feature = own.feature;
      lines.push(
        '',
        `### ${feature}`,
        '',
        '| case | source | embedded | Google’s |',
        '| --- | --- | --- | --- |',
      );
    }
    const theirs = mark(official?.[index], 'Google’s emulator');
    lines.push(`| ${escaped(own.title)} | ${link(own.source)} | ${mark(own, 'embedded')} | ${theirs} |`);
  });
  return [...lines, ...(notes.length > 0 ? ['', 'What was seen instead:', '', ...notes] : [])].join('\n');
}

const escaped = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
const link = (source: string): string => (/^https?:/.test(source) ? `[doc](${source})` : escaped(source));
