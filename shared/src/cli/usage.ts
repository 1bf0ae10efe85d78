/**
 * What is wrong with a command line, and the pieces that its commands have in common. Pure.
 */

/** One line, and exit code 2. */
export class CommandLineError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CommandLineError';
  }
}

export function checkOperands(operands: readonly string[], count: number, usage: string): readonly string[] {
  if (operands.length === count && operands.every((operand) => operand !== '')) return operands;
  throw new CommandLineError(`the operands do not fit; accepted: ${usage}`);
}

export function numberOf(text: string): number {
  if (/^[1-9][0-9]{0,15}$/.test(text)) return Number(text);
  throw new CommandLineError(`NUMBER is ${JSON.stringify(text)}; accepted: a whole number from 1`);
}

export function pageSizeOf(text = '100'): number {
  const size = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (size >= 1 && size <= 500) return size;
  throw new CommandLineError(`--page-size is ${JSON.stringify(text)}; accepted: 1 to 500`);
}

export function collectionOf(option: string, name: string): string {
  if (/^[A-Za-z][A-Za-z0-9-]{0,120}$/.test(name)) return name;
  throw new CommandLineError(`${option} is ${JSON.stringify(name)}; accepted: letters, digits and hyphens`);
}

export const noCommand = (area: string, name: string, accepted: string): CommandLineError =>
  new CommandLineError(`${area} ${JSON.stringify(name)} is no command; accepted: ${accepted}`);

/** A key and an error's text may come from any publisher: what would move a terminal's cursor is escaped. */
export const shown = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) =>
    JSON.stringify(character).slice(1, -1).padStart(2),
  );

/** Columns as wide as their widest cell. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** The object of `--json`, and the lines without it. `exitCode`: where what was found out is no good news (default 0). */
export type Printed = Readonly<{ object: object; lines: readonly string[]; exitCode?: number }>;
