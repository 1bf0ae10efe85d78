#!/usr/bin/env node
/**
 * `npm start`: the whole stack, until Ctrl-C or SIGTERM.
 */
import { readOptions, summary } from './stack/options.ts';
import { onOrphaned } from './stack/orphan.ts';
import { type Stack, startStack } from './stack/stack.ts';

function fail(message: string, code: number): never {
  console.error(`error: ${message}`);
  process.exit(code);
}

let stack: Promise<Stack> | undefined;
let stopping = false;

async function stop(): Promise<void> {
  // A second Ctrl-C does not wait for an orderly end.
  if (stopping) process.exit(130);
  stopping = true;
  const running = await stack?.catch(() => undefined);
  await running?.close();
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
  stack = startStack({ ...options.stack, log: write });
  const { addresses } = await stack;
  console.log(options.json ? JSON.stringify(addresses) : summary(addresses));
} catch (error) {
  if (!stopping) fail(error instanceof Error ? error.message : String(error), 1);
}
