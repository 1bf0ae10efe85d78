/**
 * The state of the stack over HTTP.
 *
 *   GET  /state    addresses, clock, what the servers hold in numbers, what they did not implement, faults injected
 *   POST /reset    everything as it was when the stack was ready
 *   GET  /save     all of the state, as JSON
 *   POST /load     the same back; answers 400 with the place when it is not understood, and then nothing has changed
 */
import type { RestAnswer } from '../rest-error.ts';
import { UnsupportedError } from './services.ts';
import type { Stack } from './stack.ts';

export type StatePorts = Pick<Stack, 'state' | 'save' | 'load' | 'reset'>;

const METHODS: Readonly<Record<string, 'GET' | 'POST'>> = {
  '/state': 'GET',
  '/reset': 'POST',
  '/save': 'GET',
  '/load': 'POST',
};

/** Undefined for a path that is none of these. Never rejects. */
export async function answerState(
  stack: StatePorts,
  method: string,
  path: string,
  body: Buffer,
): Promise<RestAnswer | undefined> {
  const wanted = Object.hasOwn(METHODS, path) ? METHODS[path] : undefined;
  if (wanted === undefined) return undefined;
  if (method !== wanted) return refusal(405, `method ${method} on ${path}; accepted: ${wanted}`);
  try {
    switch (path) {
      case '/state':
        return { status: 200, body: stack.state() };
      case '/save':
        return { status: 200, body: stack.save() };
      case '/reset':
        await stack.reset();
        return { status: 200, body: {} };
      default:
        await stack.load(parsed(body));
        return { status: 200, body: {} };
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof UnsupportedError) return refusal(501, text);
    return refusal(path === '/load' ? 400 : 503, text);
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (error) {
    throw new Error(`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const refusal = (status: number, error: string): RestAnswer => ({ status, body: { error } });
