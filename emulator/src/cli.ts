#!/usr/bin/env node
/**
 * The servers, or with `--toolkit` (which `npm start` gives) the whole toolkit, until Ctrl-C, SIGTERM or the end of the
 * command that it was started for. Ended in any way it leaves no process and no port.
 */
import { createRequire } from 'node:module';
import { rmSync } from 'node:fs';
import { SeedError } from './seed/named.ts';
import { type Beside, beside } from './stack/beside.ts';
import { type CommandLine, readCommandLine } from './stack/command-line.ts';
import { environmentOf, exportLines, writeWhole } from './stack/environment.ts';
import { summary } from './stack/help.ts';
import { pathOf } from './stack/input-files.ts';
import { OptionError } from './stack/option-error.ts';
import { onOrphaned } from './stack/orphan.ts';
import { planned } from './stack/planned.ts';
import { StateError } from './stack/saved-stack.ts';
import { type Stack, startStack } from './stack/stack.ts';
import { startToolkit } from './stack/toolkit.ts';

type Running = Pick<Stack, 'addresses' | 'save' | 'close'>;

let running: Running | undefined;
let options: CommandLine | undefined;
let command: Beside | undefined;
let stopping = false;

function fail(message: string, code: number): never {
  console.error(`error: ${message}`);
  process.exit(code);
}

async function stop(code: number, problem?: string): Promise<void> {
  // While it starts, and at a second Ctrl-C, nothing waits: the processes of the stack end with this one.
  if (running === undefined || stopping) process.exit(130);
  stopping = true;
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
  await command?.end();
  if (save !== undefined) await attempt(() => writeWhole(pathOf(save), `${JSON.stringify(saved())}\n`));
  await attempt(close);
  if (writeEnv !== undefined) await attempt(() => rmSync(pathOf(writeEnv), { force: true }));
  for (const problem of problems) console.error(`error: ${problem}`);
  process.exit(problems.length > 0 ? code || 1 : code);
}

function started({ start }: CommandLine, log: (line: string) => void): Promise<Running> {
  return start.kind === 'toolkit'
    ? startToolkit({ ...start.options, log })
    : startStack({ ...start.options, log });
}

async function main(line: CommandLine): Promise<void> {
  const { json, quiet, writeEnv, command: wanted } = line;
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

process.on('SIGINT', () => void stop(0));
process.on('SIGTERM', () => void stop(0));
process.on('SIGHUP', () => void stop(0));
onOrphaned(() => void stop(0));

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
  fail(message, error instanceof OptionError || error instanceof SeedError ? 2 : 1);
}
