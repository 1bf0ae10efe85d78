/**
 * A deployable as its files: the bundle, a manifest with exact versions, and the lock file that goes with it, so that
 * `npm ci --omit=dev` installs what the tests ran with. The same sources give the same bytes.
 *
 * Writing replaces what was there before. A crash in between leaves a folder or an archive that is not whole; the
 * next run replaces both.
 */
import { createHash } from 'node:crypto';
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { archive } from './archive.ts';
import { bundle } from './bundle.ts';
import type { Deployable } from './deployables.ts';
import { type Lock, lockedVersion, type PrunedLock, prunedLock } from './pruned-lock.ts';
import { sbom } from './sbom.ts';
import { readJson, readWorkspaces, type Workspace } from './workspaces.ts';

/** By path in the deployed folder. */
export type Files = ReadonlyMap<string, Uint8Array>;

export type Packaged = Readonly<{
  folder: string;
  zip: string;
  /** What it is made of, as CycloneDX. */
  sbom: string;
  /** Of the zip, in hexadecimal. */
  sha256: string;
  bytes: number;
}>;

/** Of the repository at `root`, an absolute path. Rejects when a version is not to be had from its lock file. */
export async function deployedFiles(root: string, deployable: Deployable): Promise<Files> {
  const workspaces = await readWorkspaces(root);
  const workspace = [...workspaces.values()].find(({ folder }) => folder === deployable.workspace);
  if (workspace === undefined) throw new Error(`there is no workspace ${deployable.workspace}`);
  const lock = (await readJson(join(root, 'package-lock.json'))) as Lock;
  const bundled = await bundle(root, workspaces, `${deployable.workspace}/${deployable.entry}`);
  const dependencies = Object.fromEntries(
    bundled.packages.map((name) => [name, lockedVersion(lock, name)] as const),
  );
  const { manifest, locked } = described(deployable, workspace, lock, dependencies);
  const texts = { ...deployable.files, 'package.json': json(manifest), 'package-lock.json': json(locked) };
  const encoder = new TextEncoder();
  return new Map([
    ['index.js', encoder.encode(START)],
    ...bundled.files,
    ...Object.entries(texts).map(([path, text]) => [path, encoder.encode(text)] as const),
  ]);
}

/**
 * What is started. An older Node would end somewhere in a client, with a syntax error or a missing function; the main
 * file is read only after this.
 */
const START = `const [major] = process.versions.node.split('.');
if (Number(major) < 22) {
  console.error(\`cannot start: this is Node \${process.versions.node}; accepted: 22 or later\`);
  process.exit(1);
}
await import('./main.js');
`;

/** Writes `NAME/`, `NAME.zip` and `NAME.cdx.json` into `out`. */
export async function writePackage(files: Files, name: string, out: string): Promise<Packaged> {
  const folder = join(out, name);
  await rm(folder, { recursive: true, force: true });
  // Whatever the umask is: builders read under another account.
  for (const directory of directoriesOf(files)) {
    await mkdir(join(folder, directory), { recursive: true });
    await chmod(join(folder, directory), 0o755);
  }
  for (const [path, content] of files) {
    await writeFile(join(folder, path), content);
    await chmod(join(folder, path), 0o644);
  }
  const zip = join(out, `${name}.zip`);
  const bytes = archive(files);
  await writeFile(`${zip}.new`, bytes);
  await rename(`${zip}.new`, zip);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const lock = JSON.parse(Buffer.from(files.get('package-lock.json') ?? '').toString()) as PrunedLock;
  const made = join(out, `${name}.cdx.json`);
  await writeFile(made, json(sbom(lock, sha256)));
  return { folder, zip, sbom: made, sha256, bytes: bytes.length };
}

/** The outer ones first. */
function directoriesOf(files: Files): readonly string[] {
  const directories = new Set(['.']);
  for (const path of files.keys()) {
    const parts = dirname(path).split('/');
    parts.forEach((_, index) => directories.add(parts.slice(0, index + 1).join('/')));
  }
  return [...directories].toSorted();
}

function described(
  { name, engines, start }: Deployable,
  { manifest }: Workspace,
  lock: Lock,
  dependencies: Readonly<Record<string, string>>,
): Readonly<{ manifest: object; locked: object }> {
  const common = {
    name: `pubsub-guarantees-${name}`,
    version: manifest.version,
    ...(manifest.license !== undefined && { license: manifest.license }),
    engines,
  };
  return {
    manifest: {
      ...common,
      private: true,
      description: manifest.description,
      type: 'module',
      main: 'index.js',
      scripts: { start, 'gcp-build': '' },
      dependencies,
    },
    locked: prunedLock(lock, common, dependencies),
  };
}

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
