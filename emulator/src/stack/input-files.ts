/** Files that the command line names. What is wrong with one is an error of one line that names it and the place. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { createFaults } from '../faults/index.ts';
import { parseDefinitions } from '../firestore/index-definitions.ts';
import { SeedError } from '../seed/named.ts';
import type { Seed } from '../seed/seed.ts';
import { parseSeed } from '../seed/seed-file.ts';
import { OptionError } from './option.ts';

export function readSeed(file: string): Seed {
  try {
    return parseSeed(textOf(file), file);
  } catch (error) {
    if (error instanceof SeedError) throw new OptionError(error.message);
    throw error;
  }
}

export function readJson(file: string): unknown {
  try {
    return JSON.parse(textOf(file)) as unknown;
  } catch (error) {
    if (error instanceof OptionError) throw error;
    // V8 quotes from the file, line breaks included.
    const text = error instanceof Error ? error.message : String(error);
    throw new OptionError(`${file} is not JSON: ${text.replaceAll(/\s+/g, ' ')}`);
  }
}

/** A firestore.indexes.json. */
export function readIndexes(file: string): object {
  const definitions = readJson(file);
  try {
    parseDefinitions(definitions, file);
  } catch (error) {
    throw new OptionError(lineOf(error));
  }
  return definitions as object;
}

/** In YAML or JSON. */
export function readFaults(file: string): unknown {
  const document = parseDocument(textOf(file));
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw new OptionError(`${file}: ${lineOf(problem)}`);
  try {
    const plan: unknown = document.toJS();
    createFaults().set(plan);
    return plan;
  } catch (error) {
    throw new OptionError(`${file}: ${lineOf(error)}`);
  }
}

/** Where the user was: npm runs a script in the folder of its package. */
export const pathOf = (file: string): string => resolve(process.env['INIT_CWD'] ?? '.', file);

/** Windows' editors put one in front. */
const BYTE_ORDER_MARK = /^\uFEFF/;

function textOf(file: string): string {
  try {
    return readFileSync(pathOf(file), 'utf8').replace(BYTE_ORDER_MARK, '');
  } catch (error) {
    throw new OptionError(`${file} cannot be read: ${lineOf(error)}`);
  }
}

const lineOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
