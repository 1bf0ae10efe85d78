/**
 * What a test expects of an option that is refused: the code, the option's path, and a text that begins with it.
 */
import assert from 'node:assert/strict';
import { ConfigError } from '../errors.ts';

/** For `assert.throws` and `assert.rejects`. `text` is what else the message must match. */
export const refusal =
  (path: string, text = /; accepted: /) =>
  (error: unknown): true => {
    assert.ok(error instanceof ConfigError, String(error));
    assert.deepEqual([error.code, error.option?.path], ['INVALID_OPTION', path], error.message);
    assert.ok(error.message.startsWith(`${path} is `), error.message);
    assert.match(error.message, text);
    return true;
  };
