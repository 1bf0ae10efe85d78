/** Counts what the units reported: tests by result, and for each file its tests and its time. */
import { isAbsolute, join } from 'node:path';
import type { Ran, TestEvent } from './run.ts';

export type Counts = Readonly<{ passed: number; failed: number; skipped: number }>;
export type FileRow = Readonly<{ file: string; seconds: number; cpuSeconds: number; tests: number }>;

/** Results of one unit. What failed outside a test (a file that does not load, a hook) counts as one failure. */
export function countsOf({ events }: Ran): Counts {
  const all = events.filter(
    ({ type, data }) => type === 'test:fail' && data.details?.error?.failureType !== 'subtestsFailed',
  );
  // A fault that is known and named, and not mended yet: counted with what is skipped, as node:test does not fail for it.
  const known = all.filter(({ data }) => isSkipped(data.todo));
  const failed = all.filter(({ data }) => !isSkipped(data.todo));
  const passed = events.filter((event) => event.type === 'test:pass' && isTest(event));
  const skipped = passed.filter(({ data }) => isSkipped(data.skip));
  const whole = events.findLast(({ type, data }) => type === 'test:summary' && data.file === undefined);
  const isWhole = whole?.data.success === true;
  return {
    passed: passed.length - skipped.length,
    failed: isWhole ? failed.length : Math.max(1, failed.length),
    skipped: skipped.length + known.length,
  };
}

/** Neither a suite nor a file, which node:test reports in the place of tests where it has none. */
const isTest = ({ data: { name, details } }: TestEvent): boolean =>
  details?.type !== 'suite' && !(name !== undefined && isAbsolute(name));

/** A reason may be the empty string. */
const isSkipped = (skip: string | boolean | undefined): boolean => skip !== undefined && skip !== false;

/** A row for each file of a unit. Files that share a process share its CPU time by the time that each took. */
export function rowsOf({ unit, events, seconds, cpuSeconds }: Ran, root: string): readonly FileRow[] {
  const ended = events.filter(({ type }) => type === 'test:pass' || type === 'test:fail');
  const [only = ''] = unit.files;
  if (unit.lane !== 'together') {
    return [{ file: only, seconds, cpuSeconds, tests: ended.filter(isTest).length }];
  }
  const owners = new Map(ended.map(({ data }) => [data.testId, data.parentId]));
  const ownerOf = (id: number | undefined): number | undefined => {
    const parent = owners.get(id);
    return owners.has(parent) ? ownerOf(parent) : id;
  };
  return unit.files.map((file) => {
    const suite = ended.find(({ data }) => data.nesting === 0 && data.name === join(root, file))?.data;
    const tests = ended.filter((event) => isTest(event) && ownerOf(event.data.testId) === suite?.testId);
    const own = (suite?.details?.duration_ms ?? 0) / 1_000;
    return { file, seconds: own, cpuSeconds: (cpuSeconds * own) / seconds, tests: tests.length };
  });
}
