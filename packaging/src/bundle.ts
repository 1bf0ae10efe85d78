/**
 * One entry point bundled: code of this repository inside, third parties' packages outside, because Google's client
 * libraries look for files beside their own. What the code imports dynamically stays a file of its own, so that a
 * process loads only what its configuration needs.
 *
 * The same sources give the same bytes: names and comments hold paths relative to the repository, never its place.
 */
import { relative } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { packageOf, sourceOf, type Workspaces } from './workspaces.ts';

export type Bundle = Readonly<{
  /** By path in the deployed folder. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Names of the packages that it imports, sorted. */
  packages: readonly string[];
}>;

/** `entry` is relative to `root`, an absolute path. Rejects with esbuild's own errors. */
export async function bundle(root: string, workspaces: Workspaces, entry: string): Promise<Bundle> {
  const outdir = `${root}/out`;
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { main: entry },
    outdir,
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    // The oldest runtime that is deployed to.
    target: 'node22',
    chunkNames: 'chunks/[name]-[hash]',
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'silent',
    inject: ['packaging/src/prelude/prelude.ts'],
    plugins: [workspaceSources(root, workspaces)],
  });
  const packages = new Set<string>();
  for (const { imports } of Object.values(metafile.outputs)) {
    for (const { path, external } of imports) {
      if (external === true && !path.startsWith('node:')) packages.add(packageOf(path));
    }
  }
  return {
    files: new Map(outputFiles.map(({ path, contents }) => [relative(outdir, path), contents])),
    packages: [...packages].toSorted(),
  };
}

/** Resolves our own packages to their sources. `external`: others stay outside of the bundle. */
export function workspaceSources(
  root: string,
  workspaces: Workspaces,
  { external } = { external: true },
): Plugin {
  return {
    name: 'workspace-sources',
    setup(esbuild) {
      esbuild.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
        if (kind === 'entry-point') return undefined;
        const source = sourceOf(workspaces, root, path);
        if (source !== undefined) return { path: source };
        return external ? { path, external } : undefined;
      });
    },
  };
}
