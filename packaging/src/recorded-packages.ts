/** Preloaded into a process: writes the name of each package to PACKAGES_FILE when its first module is loaded. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = process.env['PACKAGES_FILE'] ?? '';
const seen = new Set<string>();

registerHooks({
  load(url, context, nextLoad) {
    const name = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
    if (name !== undefined && !seen.has(name)) {
      seen.add(name);
      appendFileSync(file, `${name}\n`);
    }
    return nextLoad(url, context);
  },
});
