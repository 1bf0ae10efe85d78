/**
 * The HTTP endpoint of the faults, to be mounted on a control server:
 *
 * - `GET /faults`: the plan, how often each rule fired, how many records there are. `POST /faults` sets a plan,
 *   `DELETE /faults` removes it.
 * - `POST /faults/restart` with `{ service, state, downMs }`: answered when the service is up again, or with `downMs`
 *   above 0 when it is down.
 * - `GET /log`, with `service`, `method`, `after` (a sequence) and `limit` (default 1,000): what was injected.
 */
import type { RestAnswer } from '../rest-error.ts';
import { oneOf, onlyKnown, PlanError, whole } from './checked.ts';
import type { Faults } from './faults.ts';
import { parseRestart } from './parse-plan.ts';
import { SERVICES } from './plan.ts';

const DEFAULT_LIMIT = 1_000;
const MAX_LIMIT = 100_000;

/** `query` without its question mark. Undefined for paths that are not of faults. Never rejects. */
export function answerFaults(
  faults: Faults,
  method: string,
  path: string,
  query: string,
  body: Buffer,
): Promise<RestAnswer> | undefined {
  if (path !== '/faults' && path !== '/faults/restart' && path !== '/log') return undefined;
  return answer(faults, method, path, query, body).catch((error: unknown) => ({
    status: error instanceof PlanError ? 400 : 500,
    body: { error: error instanceof Error ? error.message : String(error) },
  }));
}

async function answer(
  faults: Faults,
  method: string,
  path: string,
  query: string,
  body: Buffer,
): Promise<RestAnswer> {
  if (path === '/log') {
    if (method !== 'GET') return notAllowed(method, path, 'GET');
    return { status: 200, body: selected(faults, new URLSearchParams(query)) };
  }
  if (path === '/faults/restart') {
    if (method !== 'POST') return notAllowed(method, path, 'POST');
    const { service, ...spec } = parseRestart(parsed(body));
    await faults.restart(service, spec);
    return { status: 200, body: { service, ...spec } };
  }
  if (method === 'POST') faults.set(parsed(body));
  else if (method === 'DELETE') faults.clear();
  else if (method !== 'GET') return notAllowed(method, path, 'GET, POST, DELETE');
  return { status: 200, body: current(faults) };
}

function current(faults: Faults): object {
  const { seed, rules } = faults.plan();
  const fired = faults.fired();
  return {
    seed,
    rules: rules.map((rule, index) => ({ ...rule, fired: fired[index] })),
    recorded: faults.log().length,
    dropped: faults.dropped(),
  };
}

function selected(faults: Faults, query: URLSearchParams): object {
  onlyKnown('', Object.fromEntries(query), ['service', 'method', 'after', 'limit']);
  const service = query.get('service');
  const method = query.get('method');
  if (service !== null) oneOf('service', service, SERVICES);
  const after = numberOf(query, 'after', 0, 0, Number.MAX_SAFE_INTEGER);
  const limit = numberOf(query, 'limit', DEFAULT_LIMIT, 1, MAX_LIMIT);
  const records = faults
    .log()
    .filter(
      (record) =>
        record.sequence > after &&
        (service === null || record.service === service) &&
        (method === null || record.method === method),
    );
  return {
    records: records.slice(0, limit),
    left: Math.max(records.length - limit, 0),
    dropped: faults.dropped(),
  };
}

function numberOf(query: URLSearchParams, name: string, absent: number, from: number, to: number): number {
  const given = query.get(name);
  if (given === null) return absent;
  return whole(name, /^\d+$/.test(given) ? Number(given) : given, from, to);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new PlanError('the body is not JSON');
  }
}

const notAllowed = (method: string, path: string, accepted: string): RestAnswer => ({
  status: 405,
  body: { error: `method ${method} on ${path}; accepted: ${accepted}` },
});
