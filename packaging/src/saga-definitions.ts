/**
 * The sagas of a user, packed as one file that lies beside the function `saga`: with the library inside, because the
 * function's own copy is in its bundle, and with all that the definitions import of third parties.
 *
 * The same sources give the same bytes, wherever they are: without whitespace there are no comments with paths.
 */
import { build } from 'esbuild';
import type { Workspaces } from './workspaces.ts';
import { workspaceSources } from './bundle.ts';

/** What `SAGA_MODULE` names. */
export const DEFINITIONS_FILE = 'sagas.js';

/** `file` is absolute. Rejects with esbuild's own errors, and where the file has no default export. */
export async function packDefinitions(
  root: string,
  workspaces: Workspaces,
  file: string,
): Promise<Uint8Array> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [file],
    outdir: `${root}/out`,
    write: false,
    metafile: true,
    bundle: true,
    format: 'esm',
    platform: 'node',
    // The oldest runtime that is deployed to.
    target: 'node22',
    minifyWhitespace: true,
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'silent',
    plugins: [workspaceSources(root, workspaces, { external: false })],
  });
  const [output] = outputFiles;
  const exported = Object.values(metafile.outputs).flatMap(({ exports }) => exports);
  if (output === undefined || !exported.includes('default'))
    throw new Error(`${file} has no default export; accepted: a file that exports the list of its sagas`);
  return output.contents;
}
