/**
 * Reading planned values: texts, last parts of names, and what stands in the first of nested blocks.
 */
import { type Json, objectOf, textOf } from '../module.ts';

export const text = (value: Json | undefined): string =>
  Array.isArray(value) ? value.map((item: Json) => textOf(item)).join(',') : textOf(value);

export const last = (value: Json | undefined): string => text(value).split('/').at(-1) ?? '';

export function at(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const inner = objectOf(value)[name];
  // A list of one block stands for the block.
  return at(Array.isArray(inner) && typeof inner[0] === 'object' ? (inner[0] as Json) : inner, ...rest);
}

export const texts = (...values: readonly (Json | undefined)[]): string => values.map(text).join('-');
