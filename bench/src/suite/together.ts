/**
 * One process for several test files, named by its arguments: each file is a suite, so that its hooks are its own, and
 * the file must leave the process as it found it, or its suite fails. Started by the runner; `run.ts` has the rest.
 */
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const OPEN = ' open: ';
const TURN_MS = 10;
const TURNS = 100;

/** What a file could leave behind for the next one, a line each. */
function traces(): readonly string[] {
  return [
    ...Object.entries(process.env).map(([name, value]) => `variable ${name}=${value}`),
    ...Object.getOwnPropertyNames(globalThis).map((name) => `global ${name}`),
    `${Error.stackTraceLimit} lines of a stack trace`,
    `folder ${process.cwd()}`,
    ...process.eventNames().map((name) => `${process.listenerCount(name)} listeners to ${String(name)}`),
    ...[...Map.groupBy(open(), (name) => name)].map(([name, { length }]) => `${length}${OPEN}${name}`),
  ];
}

/** Pipes are those of the process itself, and what is immediate ends by itself. */
const open = (): readonly string[] =>
  process.getActiveResourcesInfo().filter((name) => !/^(?:Pipe|Immediate|TTY)/.test(name));

for (const file of process.argv.slice(2)) {
  void describe(file, async () => {
    const found = new Set<string>();
    const left = (): readonly string[] => traces().filter((trace) => !found.has(trace));
    before(() => {
      for (const trace of traces()) found.add(trace);
    });
    after(async () => {
      // A file or a timer that is about to end is given the time for it.
      for (let turn = 0; turn < TURNS && left().some((trace) => trace.includes(OPEN)); turn += 1)
        await pause(TURN_MS);
      assert.deepEqual(left(), [], 'the file changes the process that it shares with others');
    });
    await import(pathToFileURL(file).href);
  });
}
