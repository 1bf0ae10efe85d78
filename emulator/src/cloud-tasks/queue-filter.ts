/**
 * The filter of ListQueues: conditions on any field of a queue, as in `state: PAUSED` or
 * `rate_limits.max_dispatches_per_second >= 10 AND NOT name: test`, in the syntax of Cloud Logging
 * (https://cloud.google.com/logging/docs/view/advanced_filters). Alternatives (OR) and parentheses are refused with
 * UNIMPLEMENTED, never passed over.
 */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import { readDuration } from '../json-times.ts';
import { toJson, type Fields, type Kind } from '../proto-json.ts';
import { MESSAGES } from './rest-messages.ts';

type Condition = Readonly<{
  negated: boolean;
  kind: Kind;
  path: readonly string[];
  operator: string;
  value: string;
}>;

/** Whether a queue, as the service returns it, is one that the filter asks for. */
export type QueueFilter = (queue: object) => boolean;

const QUEUE: Fields = MESSAGES['GetQueue']?.reply ?? {};

const CONDITION =
  /\s*(?:(?<negated>NOT\s+|-)?(?<field>[A-Za-z][\w.]*)\s*(?<operator><=|>=|!=|<|>|=|:)\s*(?:"(?<quoted>[^"]*)"|(?<bare>[^\s"()]+))|(?<other>\S+))/gy;

/** Throws INVALID_ARGUMENT for what is no condition on a queue. An empty filter asks for all. */
export function queueFilter(text: string): QueueFilter {
  const conditions: Condition[] = [];
  for (const { groups = {} } of text.trimEnd().matchAll(CONDITION)) {
    const { negated, field = '', operator = '', quoted, bare = '', other } = groups;
    if (other === 'AND' && conditions.length > 0) continue;
    if (other === 'OR' || other?.startsWith('(')) {
      throw unimplemented(`ListQueuesRequest.filter: this server knows no ${JSON.stringify(other)}.`);
    }
    if (other !== undefined) throw refused(`${JSON.stringify(other)} is no condition`);
    const value = quoted ?? bare;
    const condition = { negated: negated !== undefined, operator, value, ...fieldOf(field) };
    // Refuses values of another kind at once, whatever queues there are.
    if (value !== '*') comparable(condition.kind, value, field);
    conditions.push(condition);
  }
  return (queue) => {
    const json = toJson(QUEUE, queue, false);
    return conditions.every(
      (condition) => holds(condition, valueAt(json, condition.path)) !== condition.negated,
    );
  };
}

function fieldOf(name: string): Pick<Condition, 'kind' | 'path'> {
  const path = name
    .split('.')
    .map((part) => part.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
  let kind: Kind = { fields: QUEUE };
  for (const part of path) {
    const inner: Fields = typeof kind === 'object' && 'fields' in kind ? kind.fields : {};
    const next = Object.hasOwn(inner, part) ? inner[part] : undefined;
    if (next === undefined) throw refused(`a queue has no field ${name}`);
    kind = next;
  }
  return { kind, path };
}

function valueAt(json: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, part) => (at as Readonly<Record<string, unknown>> | undefined)?.[part],
    json,
  );
}

function holds({ kind, operator, value }: Condition, found: unknown): boolean {
  if (value === '*' && (operator === ':' || operator === '=')) return found !== undefined;
  // Of numbers, the default is left out in JSON.
  const given = found ?? (kind === 'int32' || kind === 'double' ? 0 : undefined);
  if (typeof given !== 'string' && typeof given !== 'number') return operator === '!=';
  const [left, right] = [comparable(kind, String(given)), comparable(kind, value)];
  switch (operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    case '!=':
      return left !== right;
    case ':':
      return typeof left === 'string' ? left.includes(String(right)) : left === right;
    default:
      return left === right;
  }
}

/** Text is compared without regard to case, as Cloud Logging does. */
function comparable(kind: Kind, text: string, field = ''): number | string {
  if (kind === 'string' || (typeof kind === 'object' && 'values' in kind)) return text.toLowerCase();
  const number = numberOf(kind, text);
  if (number === undefined || Number.isNaN(number)) {
    throw refused(`${JSON.stringify(text)} cannot be compared with ${field}`);
  }
  return number;
}

function numberOf(kind: Kind, text: string): number | undefined {
  if (kind === 'timestamp') return Date.parse(text);
  if (kind === 'int32' || kind === 'double') return Number(text);
  const duration = kind === 'duration' ? readDuration(text) : undefined;
  return duration && Number(duration.seconds) + duration.nanos / 1e9;
}

const refused = (why: string): Error => invalidArgument(`ListQueuesRequest.filter: ${why}.`);
