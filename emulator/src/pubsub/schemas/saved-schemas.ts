/**
 * Reads schemas, and what topics say of them, from saved state (its form is in ../saved.ts). Throws an error of one line
 * that names the place for whatever the server could not have held.
 */
import { accepted, assertUnique, refused } from '../../saved-json.ts';
import { assertName } from '../names.ts';
import type { SchemaSettings } from '../wire.ts';
import { MAX_REVISIONS, revisionOf, timeKey, type Revision, type Schema } from './schemas.ts';
import { assertThere, DELETED_REVISION, DELETED_SCHEMA } from './topic-schema.ts';

export type SavedSchema = Readonly<{ name: string; revisions: readonly Omit<Schema, 'name'>[] }>;
export type ParsedSchema = Readonly<{ name: string; revisions: readonly Revision[] }>;

export function parseSchema({ name, revisions }: SavedSchema, place: string): ParsedSchema {
  const all = `${place}.revisions`;
  accepted(`${place}.name`, () => assertName('schemas', name));
  if (revisions.length === 0 || revisions.length > MAX_REVISIONS) {
    throw refused(all, `${revisions.length} of them`, `1 to ${MAX_REVISIONS} revisions`);
  }
  assertUnique(revisions, all, '.revisionId', ({ revisionId }) => revisionId);
  const read = revisions.map((revision, index) => {
    const before = revisions[index - 1]?.revisionCreateTime;
    if (before && timeKey(before) >= timeKey(revision.revisionCreateTime)) {
      throw refused(`${all}[${index}].revisionCreateTime`, revision.revisionCreateTime, 'a later one');
    }
    return accepted(`${all}[${index}]`, () => revisionOf({ name, ...revision }));
  });
  return { name, revisions: read };
}

/** What was deleted is named so; everything else must be among the schemas. */
export function assertKnown(
  settings: SchemaSettings | null,
  find: (name: string) => readonly Revision[] | undefined,
  place: string,
): void {
  if (settings === null || settings.schema === DELETED_SCHEMA) return;
  const there = (id: string): string => (id === DELETED_REVISION ? '' : id);
  const [firstRevisionId, lastRevisionId] = [settings.firstRevisionId, settings.lastRevisionId].map(there);
  accepted(`${place}.schemaSettings`, () =>
    assertThere({ find }, { ...settings, firstRevisionId, lastRevisionId } as SchemaSettings),
  );
}
