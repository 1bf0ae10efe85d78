/**
 * What becomes of a query whose index is not defined. This server needs no indexes, the service does: so that a query
 * does not fail there for the first time, the server logs it, once for each index, or refuses it as the service would.
 */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import type { FieldPath } from './field-path.ts';
import type { WireFilter } from './filters.ts';
import type { IndexDefinitions } from './index-definitions.ts';
import { type IndexPlan, indexPlans } from './index-needs.ts';
import type { Query } from './query.ts';

export type IndexOptions = Readonly<{
  /**
   * What becomes of a query that needs an index which is not defined: `warn` runs it and logs the index, once;
   * `enforce` answers FAILED_PRECONDITION as the service does; `off` runs it. Default: `warn`.
   */
  mode?: 'warn' | 'enforce' | 'off';
  /**
   * The content of a firestore.indexes.json, parsed: `indexes` and `fieldOverrides`. Whatever the mode, the limits on the
   * index entries of a document hold for these indexes and the automatic ones. Default: none are defined.
   */
  definitions?: unknown;
}>;

/**
 * Throws FAILED_PRECONDITION for a query that is refused. `aggregated`: the fields that are summed or averaged. What it
 * gives says how the service would serve the query.
 */
export type IndexCheck = (
  query: Query,
  where: WireFilter | null,
  aggregated?: readonly FieldPath[],
) => () => readonly IndexPlan[];

/** By the name of the database. */
export type IndexChecks = (database: string) => IndexCheck;

/** Of the indexes that were logged. Queries over fields whose names are data could need any number. */
const MAX_LOGGED = 1_000;

/** Throws an error of one line for a mode that is not known. */
export function indexChecks(
  mode: IndexOptions['mode'] = 'warn',
  defined: IndexDefinitions,
  log: (line: string) => void,
): IndexChecks {
  if (!['warn', 'enforce', 'off'].includes(mode)) {
    throw new Error(`indexes.mode is ${JSON.stringify(mode)}; accepted: warn, enforce, off`);
  }
  const logged = new Set<string>();
  const warnOf = (definition: string): void => {
    if (logged.has(definition) || logged.size >= MAX_LOGGED) return;
    logged.add(definition);
    log(
      `firestore: a query needs an index that is not defined; add to firestore.indexes.json: ${definition}`,
    );
  };
  return (database) =>
    (query, where, aggregated = []) => {
      if (mode === 'off') return () => indexPlans(defined, query, where, aggregated);
      const plans = indexPlans(defined, query, where, aggregated);
      for (const { missing } of plans) {
        if (missing === undefined) continue;
        const definition = JSON.stringify(missing);
        if (mode === 'enforce') throw requiresIndex(database, definition);
        warnOf(definition);
      }
      return () => plans;
    };
}

/** The service's link opens the console with the index filled in; here it is in the text, and the link is to the page. */
function requiresIndex(name: string, definition: string): StatusError {
  const [, project, , database] = name.split('/');
  const within = database === '(default)' ? '' : `/databases/${database}`;
  return new StatusError(
    status.FAILED_PRECONDITION,
    `The query requires an index. You can create it here: https://console.firebase.google.com/project/${project}/firestore${within}/indexes or add to firestore.indexes.json: ${definition}`,
  );
}
