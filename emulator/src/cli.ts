#!/usr/bin/env node
/**
 * The servers, or with `--toolkit` (which `npm start` gives) the whole toolkit, until Ctrl-C, SIGTERM or the end of the
 * command that it was started for. Ended in any way it leaves no process and no port.
 */
import { createRequire } from 'node:module';
import { rmSync } from 'node:fs';
import { PlanError } from './faults/checked.ts';
import { SeedError } from './seed/named.ts';
import { type Beside, beside } from './stack/beside.ts';
import { type CommandLine, readCommandLine } from './stack/command-line.ts';
import { assertWritable, environmentOf, exportLines, writeWhole } from './stack/environment.ts';
import { summary } from './stack/help.ts';
import { pathOf } from './stack/input-files.ts';
import { asOption, OptionError } from './stack/option.ts';
import { onOrphaned } from './stack/orphan.ts';
import { planned } from './stack/planned.ts';
import { StateError } from './stack/saved-stack.ts';
import { UnsupportedError } from './stack/services.ts';
import { type Stack, startStack } from './stack/stack.ts';
import { startToolkit } from './stack/toolkit.ts';

type Running = Pick<Stack, 'addresses' | 'save' | 'close'>;

let running: Running | undefined;
let options: CommandLine | undefined;
let command: Beside | undefined;
/** When it began to stop. */
let stopping: number | undefined;

/** npm passes on a Ctrl-C that the terminal has sent to every process: that is no second one. */
const SAME_SIGNAL_MS = 500;

function fail(message: string, code: number): never {
  console.error(`error: ${message}`);
  process.exit(code);
}

/** While it starts, and at a second signal, nothing waits: the processes of the stack end with this one. */
function interrupted(signal?: NodeJS.Signals): void {
  if (running === undefined) process.exit(130);
  if (stopping === undefined) void stop(0, undefined, signal);
  else if (performance.now() - stopping > SAME_SIGNAL_MS) process.exit(130);
}

/** With a command the stack ends with its exit code, whatever ended the command. */
async function stop(code: number, problem?: string, signal?: NodeJS.Signals): Promise<void> {
  if (running === undefined || stopping !== undefined) return;
  stopping = performance.now();
  const problems = problem === undefined ? [] : [problem];
  const attempt = async (act: () => unknown): Promise<void> => {
    try {
      await act();
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  };
  const { save, writeEnv } = options ?? {};
  const { save: saved, close } = running;
  // What is typed at a terminal goes to all that run there.
  const ended = (await command?.end(signal === 'SIGINT' && process.stdin.isTTY)) ?? code;
  if (save !== undefined) await attempt(() => writeWhole(pathOf(save), `${JSON.stringify(saved())}\n`));
  await attempt(close);
  if (writeEnv !== undefined) await attempt(() => rmSync(pathOf(writeEnv), { force: true }));
  for (const problem of problems) console.error(`error: ${problem}`);
  process.exit(problems.length > 0 ? ended || 1 : ended);
}

function started({ start }: CommandLine, log: (line: string) => void): Promise<Running> {
  return start.kind === 'toolkit'
    ? startToolkit({ ...start.options, log })
    : startStack({ ...start.options, log });
}

async function main(line: CommandLine): Promise<void> {
  const { json, quiet, save, writeEnv, command: wanted } = line;
  // Not only at the end, when what was to be saved would be lost.
  for (const file of [save, writeEnv]) if (file !== undefined) asOption(() => assertWritable(pathOf(file)));
  // With a command standard output is its own.
  const print = wanted.length > 0 ? console.error : console.log;
  const log = quiet ? () => undefined : json ? console.error : print;
  if (writeEnv !== undefined) rmSync(pathOf(writeEnv), { force: true });
  if (!json) log('starting …');
  running = await started(line, log);
  const { addresses } = running;
  const environment = environmentOf(addresses);
  if (writeEnv !== undefined) writeWhole(pathOf(writeEnv), `${exportLines(environment).join('\n')}\n`);
  if (wanted.length > 0) command = beside(wanted, environment, (code, problem) => void stop(code, problem));
  else print(json ? JSON.stringify(addresses) : summary(addresses));
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupted);
onOrphaned(interrupted);

try {
  options = readCommandLine(process.argv.slice(2), process.env);
  const { text, help } = options;
  if (text === 'help') console.log(help);
  else if (text === 'version') console.log(createRequire(import.meta.url)('../package.json').version);
  else if (text === 'environment') console.log(exportLines(environmentOf(planned(options))).join('\n'));
  else await main(options);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof StateError) fail(`${options?.load}: ${message}`, 2);
  if (error instanceof PlanError || error instanceof UnsupportedError)
    fail(`${options?.faults}: ${message}`, 2);
  fail(message, error instanceof OptionError || error instanceof SeedError ? 2 : 1);
}
