/**
 * What a test file reaches through its imports, read from the text of the sources: from file to file, to the packages
 * and Node modules at the end. Imports of types alone reach nothing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';

export type Reached = Readonly<{
  /** The file itself and every source of the repository that is loaded with it, as absolute paths. */
  sources: readonly string[];
  /** Node modules (`node:net`) and packages (`@google-cloud/pubsub`), as they are written. */
  modules: ReadonlySet<string>;
}>;

const STATEMENT =
  /(?:^|\n)\s*(?:import|export)\s(?!type\s)(?:[^'";]*?\sfrom\s)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;
const OWN = /^pubsub-guarantees/;

/**
 * A reader that looks at each source once.
 *
 * @example
 * ```ts
 * const reachedFrom = importReader();
 * reachedFrom('/repository/shared/src/hash.test.ts').modules.has('node:crypto'); // true
 * ```
 */
export function importReader(): (file: string) => Reached {
  const seen = new Map<string, readonly string[]>();

  return (file) => {
    const sources = new Set([file]);
    const modules = new Set<string>();
    for (const source of sources) {
      const imports = seen.get(source) ?? importsOf(source);
      seen.set(source, imports);
      for (const name of imports) {
        if (!isAbsolute(name)) modules.add(name);
        // What is missing fails when the test is loaded.
        else if (existsSync(name)) sources.add(name);
      }
    }
    return { sources: [...sources], modules };
  };
}

/** What one source imports: a path for a source of the repository, a name for anything else. */
function importsOf(file: string): readonly string[] {
  if (!file.endsWith('.ts')) return [];
  const names = [...readFileSync(file, 'utf8').matchAll(STATEMENT)].map(([, from, by]) => from ?? by ?? '');
  return names.map((name) => {
    if (name.startsWith('.')) return join(dirname(file), name);
    return OWN.test(name) ? createRequire(file).resolve(name) : name;
  });
}
