/**
 * `npm run package`: the two deployables under `build/`, each as a folder and as a zip, with a list of what it is made of beside it. The same sources give the same
 * hash, so that it can stand in an object's name and an unchanged deployable is not deployed again.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEPLOYABLES } from './deployables.ts';
import { deployedFiles, writePackage } from './package.ts';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

if (process.argv.length > 2) {
  console.error(`error: ${JSON.stringify(process.argv.slice(2).join(' '))}; accepted: no arguments`);
  process.exit(2);
}
for (const deployable of DEPLOYABLES) {
  const files = await deployedFiles(root, deployable);
  const { zip, sha256, bytes } = await writePackage(files, deployable.name, `${root}/build`);
  console.log(`${sha256}  ${relative(process.cwd(), zip)}  ${Math.ceil(bytes / 1_024)} KB`);
}
