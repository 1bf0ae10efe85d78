/**
 * A CommonJS module that is read and run when code first reads one of its exports, and not when it is required. That
 * code sees what the module itself exports.
 *
 * `known` are exports that are available without it, because another module, which is loaded anyway, exports them too.
 */
import Module from 'node:module';

/** By name: each gives the export when it is asked for. */
export type Known = Readonly<Record<string, () => unknown>>;

/** `path` is the module's file, as `require.resolve` gives it. Nothing is done for one that is loaded already. */
export function loadLazily(require: NodeJS.Require, path: string, known: Known = {}): void {
  if (require.cache[path] !== undefined) return;
  let loaded: object | undefined;
  const load = (): object => {
    if (loaded === undefined) {
      delete require.cache[path];
      loaded = require(path) as object;
    }
    return loaded;
  };
  const stand = new Module(path);
  stand.filename = path;
  stand.loaded = true;
  stand.exports = new Proxy(
    {},
    {
      // Compiled code asks this of everything that it requires, and then leaves the rest alone.
      get: (_, key) => {
        if (key === '__esModule') return true;
        const here = typeof key === 'string' && Object.hasOwn(known, key) ? known[key] : undefined;
        return here === undefined ? Reflect.get(load(), key) : here();
      },
      has: (_, key) => Reflect.has(load(), key),
      ownKeys: () => Reflect.ownKeys(load()),
      getOwnPropertyDescriptor: (_, key) => {
        const found = Reflect.getOwnPropertyDescriptor(load(), key);
        return found && { ...found, configurable: true };
      },
    },
  );
  require.cache[path] = stand;
}
