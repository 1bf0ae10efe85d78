/**
 * What a package is made of, as CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json/): every third-party package of its
 * lock file, with the hash that npm checks when it installs it. The same package gives the same bytes: no time, and a
 * serial number that is made of the archive's hash.
 */
import { lockedPath, type PrunedLock } from './pruned-lock.ts';

type Locked = Readonly<{
  version?: string;
  integrity?: string;
  license?: string;
  optional?: boolean;
  dependencies?: Readonly<Record<string, string>>;
  optionalDependencies?: Readonly<Record<string, string>>;
}>;

/** `sha256`: of the archive, in hexadecimal. */
export function sbom(lock: PrunedLock, sha256: string): object {
  const packages = Object.entries(lock.packages as Readonly<Record<string, Locked>>);
  const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 13);
  const refOf = (path: string): string => `${purl(nameOf(path), lock.packages[path] as Locked)}#${path}`;
  const root = `pkg:npm/${lock.name}@${lock.version}`;
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${uuid(sha256)}`,
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': root,
        name: lock.name,
        version: lock.version,
        purl: root,
        hashes: [{ alg: 'SHA-256', content: sha256 }],
      },
    },
    components: packages
      .filter(([path]) => path !== '')
      .map(([path, entry]) => ({
        type: 'library',
        'bom-ref': refOf(path),
        name: nameOf(path),
        version: entry.version,
        scope: entry.optional === true ? 'optional' : 'required',
        purl: purl(nameOf(path), entry),
        ...(entry.license !== undefined && { licenses: [{ expression: entry.license }] }),
        ...(entry.integrity !== undefined && { hashes: hashesOf(entry.integrity) }),
      })),
    dependencies: packages.map(([path, { dependencies, optionalDependencies }]) => ({
      ref: path === '' ? root : refOf(path),
      dependsOn: Object.keys({ ...dependencies, ...optionalDependencies })
        .map((name) => lockedPath(lock.packages, path, name))
        .filter((found) => found !== undefined)
        .map(refOf)
        .toSorted(),
    })),
  };
}

const purl = (name: string, { version = '' }: Locked): string =>
  `pkg:npm/${name.replace(/^@/, '%40')}@${version}`;

/** npm has them in base64, CycloneDX in hexadecimal. */
function hashesOf(integrity: string): readonly object[] {
  const names: Readonly<Record<string, string>> = { sha512: 'SHA-512', sha1: 'SHA-1' };
  return integrity.split(' ').flatMap((one) => {
    const at = one.indexOf('-');
    const [algorithm, digest] = [one.slice(0, at), one.slice(at + 1)] as const;
    const alg = names[algorithm];
    return alg === undefined ? [] : [{ alg, content: Buffer.from(digest, 'base64').toString('hex') }];
  });
}

/** Of version 8, which is for values of one's own (https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8). */
const uuid = (hex: string): string =>
  [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
