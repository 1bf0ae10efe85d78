/**
 * The part of a lock file that some packages need, as a lock file of its own. Every version is the one that the tests
 * ran with: nothing is resolved anew, and no registry is named. Pure; throws where the lock does not hold what is asked.
 *
 * Packages keep their places under node_modules, so that each of them still finds the same others.
 */

export type Entry = Readonly<{
  version?: string;
  link?: boolean;
  dependencies?: Readonly<Record<string, string>>;
  optionalDependencies?: Readonly<Record<string, string>>;
  peerDependencies?: Readonly<Record<string, string>>;
  peerDependenciesMeta?: Readonly<Record<string, Readonly<{ optional?: boolean }>>>;
}>;

export type Lock = Readonly<{ lockfileVersion: number; packages: Readonly<Record<string, Entry>> }>;

/** The generated package, as its own entry of the lock says it. */
export type Root = Readonly<{ name: string; version: string }> & Readonly<Record<string, unknown>>;

export type PrunedLock = Root &
  Readonly<{ lockfileVersion: 3; requires: true; packages: Readonly<Record<string, object>> }>;

/** Fields that say why a package is in the lock it was taken from, and where it was downloaded. */
const NOT_TAKEN: ReadonlySet<string> = new Set(['dev', 'devOptional', 'optional', 'peer', 'resolved']);

/** The version of a package at the top of the tree. */
export function lockedVersion(lock: Lock, name: string): string {
  const entry = lock.packages[`node_modules/${name}`];
  if (entry?.version === undefined || entry.link === true) {
    throw new Error(`the lock file has no package ${name} at its top`);
  }
  return entry.version;
}

/** `root` with its dependencies and all that they need. */
export function prunedLock(
  lock: Lock,
  root: Root,
  dependencies: Readonly<Record<string, string>>,
): PrunedLock {
  if (lock.lockfileVersion !== 3) throw new Error(`lock file version ${lock.lockfileVersion}; accepted: 3`);
  const own: Entry = { dependencies };
  const needed = reach(lock, own, false);
  const everything = reach(lock, own, true);
  const packages: Record<string, object> = { '': { ...root, dependencies } };
  for (const path of [...everything].toSorted()) {
    const kept = Object.entries(lock.packages[path] ?? {}).filter(([key]) => !NOT_TAKEN.has(key));
    packages[path] = { ...Object.fromEntries(kept), ...(!needed.has(path) && { optional: true }) };
  }
  return { name: root.name, version: root.version, lockfileVersion: 3, requires: true, packages };
}

/** The places of everything that is reached from `root`. */
function reach(lock: Lock, root: Entry, optionalToo: boolean): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting: [string, Entry][] = [['', root]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [from, entry] = next;
    for (const { name, isOptional } of wants(entry)) {
      if (isOptional && !optionalToo) continue;
      const path = lockedPath(lock.packages, from, name);
      if (path === undefined) {
        if (isOptional) continue;
        throw new Error(
          `the lock file has no ${name}, which ${from === '' ? 'is imported' : `${from} needs`}`,
        );
      }
      const found = lock.packages[path];
      if (found === undefined || found.link === true) {
        throw new Error(`${name} is a link in the lock file and cannot be installed elsewhere`);
      }
      if (reached.has(path)) continue;
      reached.add(path);
      waiting.push([path, found]);
    }
  }
  return reached;
}

function wants(entry: Entry): readonly Readonly<{ name: string; isOptional: boolean }>[] {
  const {
    dependencies = {},
    optionalDependencies = {},
    peerDependencies = {},
    peerDependenciesMeta = {},
  } = entry;
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  return [
    ...[...Object.keys(dependencies), ...peers].map((name) => ({
      name,
      isOptional: name in optionalDependencies,
    })),
    ...Object.keys(optionalDependencies).map((name) => ({ name, isOptional: true })),
  ];
}

/** As Node looks for it: in the package's own node_modules, then in those around it. */
export function lockedPath(
  packages: Readonly<Record<string, object>>,
  from: string,
  name: string,
): string | undefined {
  for (let place = from; ; place = place.slice(0, Math.max(place.lastIndexOf('/node_modules/'), 0))) {
    const path = `${place === '' ? '' : `${place}/`}node_modules/${name}`;
    if (path in packages) return path;
    if (place === '') return undefined;
  }
}
