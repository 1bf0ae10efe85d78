/**
 * The packages of this repository, as its root manifest lists them, and where an import of one of them leads: to the
 * `source` condition of its `exports`, by its folder and not by a link in node_modules. So a bundle is made of the
 * sources beside it, wherever the repository stands.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

type Manifest = Readonly<{
  name: string;
  version: string;
  license?: string;
  description?: string;
  dependencies?: Readonly<Record<string, string>>;
  exports?: Readonly<Record<string, Readonly<{ source?: string }>>>;
}>;

export type Workspace = Readonly<{ folder: string; manifest: Manifest }>;

/** By package name. */
export type Workspaces = ReadonlyMap<string, Workspace>;

export async function readWorkspaces(root: string): Promise<Workspaces> {
  const { workspaces } = (await readJson(join(root, 'package.json'))) as Readonly<{
    workspaces: readonly string[];
  }>;
  const found = await Promise.all(
    workspaces.map(async (folder) => {
      const manifest = (await readJson(join(root, folder, 'package.json'))) as Manifest;
      return [manifest.name, { folder, manifest }] as const;
    }),
  );
  return new Map(found);
}

export async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8'));
}

/** The package that an import names: `@scope/name/file` is `@scope/name`. */
export function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
}

/** The file of a workspace that this import means; undefined for a package of a third party. */
export function sourceOf(workspaces: Workspaces, root: string, specifier: string): string | undefined {
  const name = packageOf(specifier);
  const workspace = workspaces.get(name);
  if (workspace === undefined) return undefined;
  const source = workspace.manifest.exports?.[`.${specifier.slice(name.length)}`]?.source;
  if (source === undefined) throw new Error(`${specifier} is not among the exports of ${workspace.folder}`);
  return join(root, workspace.folder, source);
}
