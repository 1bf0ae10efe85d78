/**
 * What one target of a Listen stream shows: documents by name, or the result of a query. It knows what was sent to its
 * client, and says what must be sent to bring it up to what is committed now. A query with a limit runs again when
 * something changed at or before its last document; without one, each changed document is looked at by itself.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { Interest, Touched } from './change-feed.ts';
import type { Doc } from './doc.ts';
import type { View } from './documents.ts';
import type { FieldPath } from './field-path.ts';
import type { IndexCheck } from './index-check.ts';
import { type DocumentName, parseDocument } from './names.ts';
import { parseQuery, type Query } from './query.ts';
import { alters, type QueryRange, rangeOf, runQuery } from './query-run.ts';
import type { WireTarget } from './requests.ts';

export type Update = Readonly<
  | { kind: 'changed'; doc: Doc; select: readonly FieldPath[] | undefined }
  /** It is not there any more, or never was. */
  | { kind: 'deleted'; name: string }
  /** It is there, and not part of the target any more. */
  | { kind: 'removed'; name: string }
>;

export type Target = Readonly<{
  interest: Interest;
  /** What to send the client now. Undefined: everything may have changed, as at first. */
  refresh(view: View, touched: ReadonlyMap<string, Touched> | undefined): readonly Update[];
}>;

/** Throws INVALID_ARGUMENT, or UNIMPLEMENTED for a query that this server does not run. */
export function parseTarget(wire: WireTarget, database: string, check: IndexCheck = () => () => []): Target {
  if (wire.targetType === 'documents' && wire.documents !== undefined) {
    const names = [...new Set(wire.documents.documents)];
    if (names.length === 0) throw invalidArgument('a target of documents must name one');
    return documentsTarget(names.map((name) => parseDocument(name, database)));
  }
  if (wire.targetType === 'query' && wire.query !== undefined) {
    const { structuredQuery, parent } = wire.query;
    if (!structuredQuery) throw invalidArgument('a target with a query needs a structured_query');
    const query = parseQuery(structuredQuery, parent, database);
    check(query, structuredQuery.where);
    return queryTarget(query);
  }
  throw invalidArgument(`the target type ${wire.targetType ?? '(not set)'} is not known`);
}

function documentsTarget(names: readonly DocumentName[]): Target {
  const shown = new Map<string, Doc | undefined>();
  return {
    interest: { documents: new Set(names.map(({ full }) => full)) },
    refresh(view, touched) {
      const updates: Update[] = [];
      for (const name of names) {
        if (touched?.has(name.full) === false) continue;
        const doc = view.get(name);
        if (shown.has(name.full) && shown.get(name.full) === doc) continue;
        shown.set(name.full, doc);
        updates.push(
          doc === undefined
            ? { kind: 'deleted', name: name.full }
            : { kind: 'changed', doc, select: undefined },
        );
      }
      return updates;
    },
  };
}

function queryTarget(query: Query): Target {
  const { select } = query;
  const everyMatch = rangeOf(query);
  const isBounded = query.offset > 0 || query.limit !== Number.POSITIVE_INFINITY;
  const shown = new Map<string, Doc>();
  /** Of the last run. */
  let range: QueryRange | undefined;

  /** Brings one document up to date. */
  function show(name: DocumentName, doc: Doc | undefined, isIn: boolean, updates: Update[]): void {
    const before = shown.get(name.full);
    if (isIn && doc !== undefined) {
      if (before === doc) return;
      shown.set(name.full, doc);
      updates.push({ kind: 'changed', doc, select });
    } else if (shown.delete(name.full)) {
      updates.push({ kind: doc === undefined ? 'deleted' : 'removed', name: name.full });
    }
  }

  function run(view: View): readonly Update[] {
    const found = runQuery(view, query);
    range = found.range;
    const names = new Set(found.docs.map(({ name }) => name.full));
    const updates: Update[] = [];
    for (const { name } of shown.values()) {
      if (!names.has(name.full)) show(name, view.get(name), false, updates);
    }
    for (const doc of found.docs) show(doc.name, doc, true, updates);
    return updates;
  }

  return {
    interest: { scope: query.scope },
    refresh(view, touched) {
      if (touched === undefined || range === undefined) return run(view);
      if (isBounded) {
        const last = range;
        const isAltered = [...touched.values()].some(({ name, before }) =>
          alters({ name, before, after: view.get(name) }, last),
        );
        return isAltered ? run(view) : [];
      }
      const updates: Update[] = [];
      for (const { name } of touched.values()) {
        const doc = view.get(name);
        show(name, doc, doc !== undefined && everyMatch.covers(doc), updates);
      }
      return updates;
    },
  };
}
