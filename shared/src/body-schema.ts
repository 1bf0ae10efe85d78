/**
 * A message's data as a value of the handler's own type: read as JSON, and judged by any library of schemas that
 * follows Standard Schema (zod, valibot, arktype and others: https://standardschema.dev).
 *
 * Data that does not fit can never succeed, so it is a dead letter. On the way the data stays bytes: only the handler
 * sees the value.
 */
import { PermanentError } from './errors.ts';
import type { Context, Handler } from './handler.ts';
import type { Message } from './message.ts';
import type { Outcome } from './outcome.ts';

/** What this needs of a Standard Schema, version 1. `Body` is what the schema makes of valid data. */
export type BodySchema<Body> = Readonly<{
  '~standard': Readonly<{
    version: 1;
    vendor: string;
    validate(value: unknown): Verdict<Body> | Promise<Verdict<Body>>;
    types?: Readonly<{ input: unknown; output: Body }> | undefined;
  }>;
}>;

type Verdict<Body> = Readonly<{ value: Body; issues?: undefined }> | Readonly<{ issues: readonly Issue[] }>;

type Issue = Readonly<{
  message: string;
  path?: readonly (PropertyKey | Readonly<{ key: PropertyKey }>)[] | undefined;
}>;

export type TypedMessage<Body> = Message & Readonly<{ body: Body }>;

/** A handler that gets the parsed body beside the message as it came. */
export type TypedHandler<Body> = (message: TypedMessage<Body>, context: Context) => Promise<Outcome>;

/** A dead letter names so many places that do not fit; the text of a dead letter has room for 1,024 bytes. */
const NAMED_ISSUES = 5;

/**
 * The typed handler as a plain one. Data that is not JSON in UTF-8, or that the schema refuses, ends as a dead letter
 * `INVALID_DATA`, whose text has the path of what does not fit, for example `items.0.price: expected number`.
 */
export function withBody<Body>(schema: BodySchema<Body>, handler: TypedHandler<Body>): Handler {
  return async (message, context) => {
    const verdict = await schema['~standard'].validate(parsed(message.data));
    if (verdict.issues !== undefined)
      throw invalid(verdict.issues.slice(0, NAMED_ISSUES).map(shown).join('; '));
    return handler({ ...message, body: verdict.value }, context);
  };
}

function parsed(data: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch (error) {
    throw invalid('accepted: JSON in UTF-8', error);
  }
}

function shown({ message, path = [] }: Issue): string {
  const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`;
}

const invalid = (what: string, cause?: unknown): PermanentError =>
  new PermanentError('INVALID_DATA', `the data does not fit: ${what}`, { cause });
