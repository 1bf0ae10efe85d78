/**
 * `npm run package`: the two deployables under `build/`, each as a folder and as a zip, with a list of what it is made of beside it. The same sources give the same
 * hash, so that it can stand in an object's name and an unchanged deployable is not deployed again.
 *
 * `--sagas FILE` packs the definitions of FILE into the functions, as `sagas.js`, for the function `saga`.
 */
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEPLOYABLES } from './deployables.ts';
import { deployedFiles, type Files, writePackage } from './package.ts';
import { DEFINITIONS_FILE, packDefinitions } from './saga-definitions.ts';
import { readWorkspaces } from './workspaces.ts';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const given = process.argv.slice(2);
const [option, file, ...rest] = given.flatMap((word) => word.split(/(?<=^--sagas)=/));

if (given.length > 0 && (option !== '--sagas' || file === undefined || rest.length > 0)) {
  const accepted = 'no arguments, or --sagas FILE with a file whose default export is the list of sagas';
  console.error(`error: ${JSON.stringify(given.join(' '))}; accepted: ${accepted}`);
  process.exit(2);
}

/** npm runs a script in the root; a path is meant from where npm was called. */
async function definitions(path: string): Promise<Files> {
  const whole = resolve(process.env['INIT_CWD'] ?? '.', path);
  try {
    return new Map([[DEFINITIONS_FILE, await packDefinitions(root, await readWorkspaces(root), whole)]]);
  } catch (error) {
    console.error(`error: --sagas ${path}: ${error instanceof Error ? error.message : String(error)}`);
    return process.exit(1);
  }
}

// Before anything is written: a mistake in them leaves the packages of before.
const sagas = file === undefined ? new Map<string, Uint8Array>() : await definitions(file);
for (const deployable of DEPLOYABLES) {
  const own = await deployedFiles(root, deployable);
  const files = deployable.name === 'functions' ? new Map([...own, ...sagas]) : own;
  const { zip, sha256, bytes } = await writePackage(files, deployable.name, `${root}/build`);
  console.log(`${sha256}  ${relative(process.cwd(), zip)}  ${Math.ceil(bytes / 1_024)} KB`);
}
