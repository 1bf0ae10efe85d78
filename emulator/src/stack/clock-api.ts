/**
 * The stack's clock over HTTP, for tests in any language, and for programs that must know what time it is here.
 *
 *   GET  /clock                                    {"nowMs":…,"now":"…","frozen":false}
 *   POST /clock/advance         {"by":"45d"}       moves forward, firing what falls due on the way
 *   POST /clock/run-until-idle  {"limit":"1h"}     moves from timer to timer until none is left
 *   POST /clock/freeze, /clock/resume
 *
 * Every answer has the time as it is afterwards. Lengths are a whole number and a unit of ms, s, m, h or d.
 */
import type { RestAnswer } from '../rest-error.ts';
import { UnsupportedError } from './services.ts';
import type { StackClock } from './stack-clock.ts';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Eleven years: beyond the longest delay of the toolkit. */
const LONGEST_MS = 11 * 366 * UNIT_MS.d;
const DEFAULT_LIMIT = '1h';

/** Undefined for a path that is not the clock's. */
export async function answerClock(
  clock: StackClock,
  method: string,
  path: string,
  body: Buffer,
): Promise<RestAnswer | undefined> {
  const action = /^\/clock(?:\/([a-z-]+))?$/.exec(path);
  if (action === null) return undefined;
  const [, name] = action;
  const wanted = name === undefined ? 'GET' : 'POST';
  if (method !== wanted) return refusal(405, `method ${method} on ${path}; accepted: ${wanted}`);
  try {
    switch (name) {
      case undefined:
        return time(clock);
      case 'freeze':
        clock.freeze();
        return time(clock);
      case 'resume':
        clock.resume();
        return time(clock);
      case 'advance': {
        const fired = await clock.advance(length(body, 'by'));
        return time(clock, { fired });
      }
      case 'run-until-idle': {
        const fired = await clock.runUntilIdle(length(body, 'limit', DEFAULT_LIMIT));
        return time(clock, { fired });
      }
      default:
        return refusal(404, `no path ${path}; accepted: /clock/advance, /run-until-idle, /freeze, /resume`);
    }
  } catch (error) {
    if (error instanceof LengthError || error instanceof RangeError) return refusal(400, error.message);
    if (error instanceof UnsupportedError) return refusal(501, error.message);
    return refusal(503, error instanceof Error ? error.message : String(error));
  }
}

class LengthError extends Error {}

/** Throws an error that names the field, its value and what is accepted. */
function parseLength(text: unknown, name: string): number {
  const match = typeof text === 'string' ? /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) : null;
  const milliseconds = match === null ? NaN : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  if (milliseconds <= LONGEST_MS) return milliseconds;
  const accepted = 'a whole number and a unit of ms, s, m, h or d, at most eleven years, for example "10m"';
  throw new LengthError(`${name} is ${JSON.stringify(text)}; accepted: ${accepted}`);
}

function length(body: Buffer, name: string, standard?: string): number {
  let fields: unknown;
  try {
    fields = body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  } catch {
    throw new LengthError('the body is not JSON');
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new LengthError(`the body is ${JSON.stringify(fields)}; accepted: an object with ${name}`);
  }
  const unknown = Object.keys(fields).find((key) => key !== name);
  if (unknown !== undefined) throw new LengthError(`${unknown} is not known; accepted: ${name}`);
  return parseLength((Reflect.get(fields, name) as unknown) ?? standard, name);
}

function time(clock: StackClock, more: object = {}): RestAnswer {
  const nowMs = clock.now();
  return {
    status: 200,
    body: { nowMs, now: new Date(nowMs).toISOString(), frozen: clock.isFrozen(), ...more },
  };
}

const refusal = (status: number, error: string): RestAnswer => ({ status, body: { error } });
