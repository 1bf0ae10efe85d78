/** A machine without coreutils' sha256sum, such as a Mac, runs the tests of `deploy/gcloud.sh` with this one. */
import { spawnSync } from 'node:child_process';

const PROGRAM = `const hash = require('node:crypto').createHash('sha256');
process.stdin.on('data', (part) => hash.update(part)).on('end', () => console.log(hash.digest('hex') + '  -'));`;

/** Programs to put on the path, by name: none where the machine has its own. */
export function sha256sum(): Readonly<Record<string, string>> {
  if (spawnSync('sha256sum', ['--version'], { stdio: 'ignore' }).status === 0) return {};
  return { sha256sum: `#!/bin/sh\nexec '${process.execPath}' -e "${PROGRAM}"\n` };
}
