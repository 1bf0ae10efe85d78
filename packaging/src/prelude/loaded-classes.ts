/**
 * Message classes that a client of Google's has loaded for its own use, in place of building the same messages anew.
 * protobufjs made them ahead of time, with the same code generators that build messages in a running process.
 */
import type { Classes, MessageType } from './lazy-services.ts';

/**
 * `path` is the module's file, as `require.resolve` gives it. A module that is not loaded is left alone, and what is
 * no such class is not there: the messages are then built.
 */
export function loadedClasses(require: NodeJS.Require, path: () => string): Classes {
  return (name) => {
    try {
      const found = name.split('.').reduce(within, require.cache[path()]?.exports);
      return isMessageType(found) ? found : undefined;
    } catch {
      return undefined;
    }
  };
}

function within(scope: unknown, key: string): unknown {
  return isScope(scope) && Object.hasOwn(scope, key) ? Reflect.get(scope, key) : undefined;
}

const isScope = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

function isMessageType(value: unknown): value is MessageType {
  return (
    typeof value === 'function' &&
    ['fromObject', 'encode', 'decode', 'toObject'].every(
      (method) => typeof Reflect.get(value, method) === 'function',
    )
  );
}
