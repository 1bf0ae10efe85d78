#!/usr/bin/env node
/**
 * `npm start`: the whole stack, until Ctrl-C or SIGTERM.
 */
import { OptionError, readOptions, summary } from './stack/options.ts';
import { onOrphaned } from './stack/orphan.ts';
import { type Stack, startStack } from './stack/stack.ts';

function fail(message: string, code: number): never {
  console.error(`error: ${message}`);
  process.exit(code);
}

let running: Stack | undefined;
let stopping = false;

async function stop(): Promise<void> {
  // While it starts, and at a second Ctrl-C, nothing waits: the processes of the stack end with this one.
  if (running === undefined || stopping) process.exit(130);
  stopping = true;
  await running.close();
  process.exit(0);
}

process.on('SIGINT', () => void stop());
process.on('SIGTERM', () => void stop());
onOrphaned(() => void stop());

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help !== undefined) {
    console.log(options.help);
    process.exit(0);
  }
  const write = (line: string): void => (options.json ? console.error(line) : console.log(line));
  if (!options.json) console.log('starting …');
  running = await startStack({ ...options.stack, log: write });
  const { addresses } = running;
  console.log(options.json ? JSON.stringify(addresses) : summary(addresses));
} catch (error) {
  fail(error instanceof Error ? error.message : String(error), error instanceof OptionError ? 2 : 1);
}
