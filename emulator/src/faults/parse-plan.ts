/**
 * Reads a plan from JSON. What is not understood is refused with its place, before anything has changed: a rule that
 * silently never fires would let a test pass for no reason.
 */
import { status } from '@grpc/grpc-js';
import { type Json, list, object, oneOf, onlyKnown, PlanError, refused, text, whole } from './checked.ts';
import { actionsOf, fieldsOf, isRpc, type Method, METHODS } from './methods.ts';
import {
  type Action,
  type ActionType,
  type Plan,
  type RestartSpec,
  type Rule,
  type Service,
  SERVICES,
} from './plan.ts';

const MAX_RULES = 1_000;
const MAX_NUMBERS = 10_000;
const MAX_COUNT = 1_000_000_000;
/** Node's largest timer: a delay of an RPC is one. */
const MAX_MS = 2 ** 31 - 1;
/** A year. */
const MAX_DOWN_MS = 366 * 86_400_000;

const ACTION_TYPES: readonly ActionType[] = [
  'fail',
  'lose-reply',
  'delay',
  'cut',
  'drop-ack',
  'duplicate',
  'lose',
  'reorder',
  'restart',
];
const CODES = Object.keys(status).filter((name) => /^[A-Z_]+$/.test(name) && name !== 'OK');

/** Throws a PlanError of one line. */
export function parsePlan(value: unknown): Plan {
  const plan = object('the plan', value);
  onlyKnown('', plan, ['seed', 'rules']);
  const { seed = 0, rules = [] } = plan;
  return {
    seed: whole('seed', seed, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    rules: list('rules', rules, MAX_RULES).map((rule, index) => parseRule(`rules[${index}]`, rule)),
  };
}

/** The body of `POST /faults/restart`. Throws a PlanError of one line. */
export function parseRestart(value: unknown): RestartSpec & Readonly<{ service: Service }> {
  const given = object('the restart', value);
  onlyKnown('', given, ['service', 'state', 'downMs']);
  return {
    service: oneOf('service', given['service'], SERVICES),
    state: oneOf('state', given['state'], ['kept', 'lost']),
    downMs: whole('downMs', given['downMs'] ?? 0, 0, MAX_DOWN_MS),
  };
}

function parseRule(place: string, value: unknown): Rule {
  const rule = object(place, value);
  onlyKnown(place, rule, ['service', 'method', 'resource', 'nth', 'share', 'times', 'action']);
  const { nth, share, times } = rule;
  if (nth !== undefined && share !== undefined) {
    throw new PlanError(`${place} has both nth and share; accepted: one of them, or none for every call`);
  }
  const service = oneOf(`${place}.service`, rule['service'], SERVICES);
  const method = parseMethod(`${place}.method`, service, rule['method'] ?? '*');
  return {
    service,
    method,
    resource: text(`${place}.resource`, rule['resource'] ?? '*'),
    ...(nth !== undefined && { nth: parseNumbers(`${place}.nth`, nth) }),
    ...(share !== undefined && { share: parseShare(`${place}.share`, share) }),
    ...(times !== undefined && { times: whole(`${place}.times`, times, 1, MAX_COUNT) }),
    action: parseAction(`${place}.action`, service, method, rule['action']),
  };
}

function parseMethod(place: string, service: Service, value: unknown): string {
  return oneOf(place, value, ['*', ...Object.keys(METHODS[service])]);
}

function parseNumbers(place: string, value: unknown): readonly number[] {
  if (!Array.isArray(value)) return [whole(place, value, 1, MAX_COUNT)];
  if (value.length === 0) throw refused(place, value, 'a number or a list of numbers');
  return list(place, value, MAX_NUMBERS).map((n, index) => whole(`${place}[${index}]`, n, 1, MAX_COUNT));
}

function parseShare(place: string, value: unknown): number {
  if (typeof value === 'number' && value > 0 && value <= 1) return value;
  throw refused(place, value, 'above 0 to 1');
}

function parseAction(place: string, service: Service, method: string, value: unknown): Action {
  const action = object(place, value);
  const type = oneOf(`${place}.type`, action['type'], ACTION_TYPES);
  const { type: _, ...fields } = action;
  if (method === '*') assertFitsAny(place, service, type, fields);
  else assertFits(place, service, method, type, fields);
  return valuesOf(place, type, fields);
}

function assertFits(place: string, service: Service, method: string, type: ActionType, fields: Json): void {
  const about = METHODS[service][method];
  const known = about && fieldsOf(about, type);
  if (about === undefined || known === undefined) {
    const accepted = about === undefined ? [] : actionsOf(about);
    throw refused(`${place}.type`, type, `with ${method} of ${service}: ${accepted.join(', ')}`);
  }
  onlyKnown(place, fields, known);
}

/** `*` stands for the RPCs that the action fits, with all of its fields; there must be one. */
function assertFitsAny(place: string, service: Service, type: ActionType, fields: Json): void {
  const all = Object.entries(METHODS[service]);
  if (all.some(([, method]) => isRpc(method) && fitsAll(method, type, fields))) return;
  const taking = all.filter(([, method]) => fieldsOf(method, type) !== undefined);
  const rpcs = taking.filter(([, method]) => isRpc(method));
  if (rpcs.length > 0) {
    onlyKnown(place, fields, [...new Set(rpcs.flatMap(([, method]) => fieldsOf(method, type) ?? []))]);
    throw new PlanError(`${place} has fields that no method takes together; name the method`);
  }
  const names = taking.map(([name]) => name).join(', ');
  throw refused(
    `${place}.type`,
    type,
    names === '' ? `not with ${service}` : `with the method ${names} only`,
  );
}

function fitsAll(method: Method, type: ActionType, fields: object): boolean {
  const known = fieldsOf(method, type);
  return known !== undefined && Object.keys(fields).every((field) => known.includes(field));
}

/** Whether a rule with `*` is about this RPC. */
export function fitsRpc(method: Method, { type, ...fields }: Action): boolean {
  return isRpc(method) && fitsAll(method, type, fields);
}

function valuesOf(place: string, type: ActionType, fields: Json): Action {
  const at = (name: string): string => `${place}.${name}`;
  const code = fields['code'] !== undefined && { code: oneOf(at('code'), fields['code'], CODES) };
  switch (type) {
    case 'fail':
      return {
        type,
        ...code,
        ...(fields['message'] !== undefined && { message: text(at('message'), fields['message']) }),
        ...(fields['status'] !== undefined && { status: whole(at('status'), fields['status'], 300, 599) }),
      };
    case 'lose-reply':
      return { type, ...code };
    case 'delay':
      return { type, ms: whole(at('ms'), fields['ms'], 1, MAX_MS) };
    case 'cut':
      return {
        type,
        ...(fields['when'] !== undefined && { when: oneOf(at('when'), fields['when'], ['before', 'after']) }),
        ...(fields['afterMessages'] !== undefined && {
          afterMessages: whole(at('afterMessages'), fields['afterMessages'], 0, MAX_COUNT),
        }),
      };
    case 'drop-ack':
    case 'duplicate':
    case 'lose':
      return { type };
    case 'reorder':
      return {
        type,
        window: whole(at('window'), fields['window'], 1, 10_000),
        ...(fields['atMostMs'] !== undefined && {
          atMostMs: whole(at('atMostMs'), fields['atMostMs'], 1, MAX_MS),
        }),
      };
    case 'restart':
      return {
        type,
        state: oneOf(at('state'), fields['state'], ['kept', 'lost']),
        ...(fields['downMs'] !== undefined && {
          downMs: whole(at('downMs'), fields['downMs'], 0, MAX_DOWN_MS),
        }),
      };
  }
}
