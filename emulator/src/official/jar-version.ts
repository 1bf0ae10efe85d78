/** The version of an emulator: in its jar's name, or in what gcloud keeps about the components that it installed. */
import { readFileSync } from 'node:fs';
import { basename, join, sep } from 'node:path';

/** Undefined where neither says it. */
export function jarVersion(jar: string, component: string): string | undefined {
  const named = /-v?(\d+(?:\.\d+)+)(?:-all)?\.jar$/.exec(basename(jar))?.[1];
  if (named !== undefined) return named;
  const [root] = jar.split(`${sep}platform${sep}`, 1);
  if (root === undefined || root === jar) return undefined;
  try {
    const snapshot = JSON.parse(
      readFileSync(join(root, '.install', `${component}.snapshot.json`), 'utf8'),
    ) as {
      components: readonly { id: string; version: { version_string: string } }[];
    };
    return snapshot.components.find(({ id }) => id === component)?.version.version_string;
  } catch {
    // Not gcloud's folder, or a form of another time: an unknown version is no reason not to start.
    return undefined;
  }
}
