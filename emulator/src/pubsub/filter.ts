/**
 * The filter language of subscriptions: which messages a subscription gets, by their attributes alone.
 * Grammar and limits: https://cloud.google.com/pubsub/docs/subscription-message-filter
 *
 *     expression = term { "AND" term } | term { "OR" term }       (both in one expression need parentheses)
 *     term       = [ "NOT" | "-" ] ( "(" expression ")" | condition )
 *     condition  = "attributes" ":" key | "attributes" "." key ( "=" | "!=" ) string
 *                | "hasPrefix" "(" "attributes" "." key "," string ")"
 *     key        = letters, digits, hyphens and underscores, or a string
 *
 * Everything is case-sensitive. `!=` holds for a message without the attribute too: it is `NOT … =`.
 */
import { invalidArgument } from '../grpc-server.ts';
import { readString } from './filter-string.ts';

type Attributes = Readonly<Record<string, string>>;
export type Filter = (attributes: Attributes) => boolean;

const MAX_BYTES = 256;
const SPACE = /\s*/y;
const WORD = /[A-Za-z0-9_-]+/y;

/** Throws INVALID_ARGUMENT that names the place for a filter that does not parse or is too long. Empty takes all. */
export function parseFilter(source: string): Filter {
  if (source === '') return () => true;
  const size = Buffer.byteLength(source);
  if (size > MAX_BYTES) {
    throw invalidArgument(
      `Invalid filter given: it has ${size} bytes, and the maximum is ${MAX_BYTES} (filter=${source.slice(0, 64)}…).`,
    );
  }
  return parse(source);
}

function parse(source: string): Filter {
  let at = 0;

  const fail = (wanted: string, where = at): never => {
    const found = where < source.length ? `'${source.slice(where, where + 12)}'` : 'the end';
    throw invalidArgument(
      `Invalid filter given (filter=${source}): ${wanted} expected at character ${where + 1}, found ${found}.`,
    );
  };
  const match = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0] ?? '';
  };
  const skipSpace = (): void => {
    at += match(SPACE).length;
  };
  const takes = (symbol: string): boolean => {
    skipSpace();
    if (!source.startsWith(symbol, at)) return false;
    at += symbol.length;
    return true;
  };
  const takesWord = (word: string): boolean => {
    skipSpace();
    if (match(WORD) !== word) return false;
    at += word.length;
    return true;
  };
  const need = (symbol: string): void => {
    if (!takes(symbol)) fail(`'${symbol}'`);
  };
  const text = (): string => {
    skipSpace();
    if (source[at] !== '"') fail('a string in double quotes');
    const { value, end } = readString(source, at, fail);
    at = end;
    return value;
  };
  const key = (): string => {
    skipSpace();
    if (source[at] === '"') return text();
    const word = match(WORD);
    if (word === '') fail('an attribute key');
    at += word.length;
    return word;
  };
  const attribute = (): string => {
    if (!takesWord('attributes')) fail("'attributes'");
    need('.');
    return key();
  };
  const condition = (): Filter => {
    if (takesWord('hasPrefix')) {
      need('(');
      const name = attribute();
      need(',');
      const prefix = text();
      need(')');
      return (attributes) => valueOf(attributes, name)?.startsWith(prefix) ?? false;
    }
    if (!takesWord('attributes')) fail("'attributes', 'hasPrefix', 'NOT' or '('");
    if (takes(':')) {
      const name = key();
      return (attributes) => Object.hasOwn(attributes, name);
    }
    if (!takes('.')) fail("'.' or ':'");
    const name = key();
    const equal = takes('=');
    if (!equal && !takes('!=')) fail("'=' or '!='");
    const value = text();
    return (attributes) => (valueOf(attributes, name) === value) === equal;
  };
  const term = (): Filter => {
    const negated = takesWord('NOT') || takes('-');
    let inner: Filter;
    if (takes('(')) {
      inner = expression();
      need(')');
    } else {
      inner = condition();
    }
    return negated ? (attributes) => !inner(attributes) : inner;
  };
  const expression = (): Filter => {
    const terms = [term()];
    const operator = takesWord('AND') ? 'AND' : takesWord('OR') ? 'OR' : undefined;
    if (operator === undefined) return terms[0] ?? fail('an expression');
    do terms.push(term());
    while (takesWord(operator));
    const start = at;
    if (takesWord('AND') || takesWord('OR')) fail('parentheses around what AND and OR combine', start);
    return operator === 'AND'
      ? (attributes) => terms.every((one) => one(attributes))
      : (attributes) => terms.some((one) => one(attributes));
  };

  const whole = expression();
  skipSpace();
  if (at < source.length) fail("'AND', 'OR' or the end");
  return whole;
}

const valueOf = (attributes: Attributes, key: string): string | undefined =>
  Object.hasOwn(attributes, key) ? attributes[key] : undefined;
