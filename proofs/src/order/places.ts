/**
 * The places of in-order delivery at which a process may die, read from its sources: every line that waits for the store,
 * the payload store, the outbox, the dead-letter topic or the handler. All other awaits wait for one of these, or for a
 * time: to die in a pause is to die before the next request.
 */
import { readdirSync } from 'node:fs';
import { callerIn, matchesIn } from '../engine/places.ts';
import type { Request } from './faulty-store.ts';

/** The place inside the handler. */
export const HANDLER = 'the handler';
/** The publish of a dead letter: by the consumer, or by an operator. */
export const DEAD_LETTER = 'the dead letter';
/** Only where a meter is registered, and for what it shows; and after a few refusals in a row, which has a test of its own. */
const SELDOM = /^sweep:\d+ count$|^decided-commit:\d+ transact$/;
/** Reads inside that transaction: the same requests outside of it are places of their own. */
const IN_SELDOM = /^decided-commit:\d+ (read|held)$/;

const FOLDER = new URL('../../../shared/src/order/', import.meta.url);
/** Adapters and tests. */
const OTHERS = /\.test\.ts$|^(?:contract|.*-contract|memory|firestore)/;
const SOURCE = /\/shared\/src\/order\/([a-z-]+)\.ts$/;
const REQUEST =
  /(?:\bstore|\bpayloads|\brepair|\baccess|^\s*)\.(read|commit|transact|held|list|count|countHeld|put|get|done|republish)\(/g;

/** For example `cycle:87 held`. */
export function everyPlace(): readonly string[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.ts') && !OTHERS.test(name));
  const found = matchesIn(FOLDER, files, REQUEST)
    .filter(({ match: [text], above }) => !/^\s*\./.test(text) || /\bstore$/.test(above.at(-1) ?? ''))
    .map(({ file, line, match }) => `${file.replace('.ts', '')}:${line} ${match[1]}`);
  return [HANDLER, DEAD_LETTER, ...found.filter((place) => !SELDOM.test(place))];
}

/** A place that the search does not require: the same request is made elsewhere too. */
export const isSeldom = (place: string): boolean => SELDOM.test(place) || IN_SELDOM.test(place);

/** The place of the request that is made now. Costs a stack trace. */
export const placeOf = (request: Request): string =>
  request === 'dead letter' ? DEAD_LETTER : `${callerIn(SOURCE) ?? 'somewhere'} ${request}`;
