#!/usr/bin/env node
/**
 * The package's command. In the repository it runs the sources as they are, so that a build left from earlier is never
 * run by accident; an installed package has the build alone.
 */
import { existsSync } from 'node:fs';
import module from 'node:module';

const OLDEST = 22;
/** Otherwise V8 keeps far more memory for messages that stream through than the servers hold. */
const YOUNG = '--max-semi-space-size=16';
const source = new URL('../src/cli.ts', import.meta.url);
const built = new URL('../dist/cli.js', import.meta.url);

const [major = 0] = process.versions.node.split('.').map(Number);
const runs = [...(process.features.typescript ? [source] : []), built].find((file) => existsSync(file));

if (major < OLDEST || runs === undefined) {
  const why =
    major < OLDEST
      ? `Node ${process.versions.node} is too old; accepted: ${OLDEST} or later`
      : `nothing is built, and Node ${process.versions.node} does not run TypeScript; accepted: a build, or Node 24`;
  process.stderr.write(`error: ${why}\n`);
  process.exitCode = 1;
} else {
  // V8 takes the setting only at its start. On Windows, and before Node 22.15, it does not get it.
  if (process.execve !== undefined && process.platform !== 'win32' && !process.execArgv.includes(YOUNG)) {
    const { execPath, execArgv, argv, env } = process;
    process.execve(execPath, [execPath, YOUNG, ...execArgv, ...argv.slice(1)], env);
  }
  // A second start takes half as long. Node has it since 22.1.
  module.enableCompileCache?.();
  await import(runs.href);
}
