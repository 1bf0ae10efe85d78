#!/usr/bin/env node
/**
 * The package's command. In the repository it runs the sources as they are, so that a build left from earlier is never
 * run by accident; an installed package has the build alone, and Node does not run TypeScript below `node_modules`.
 */
import { existsSync } from 'node:fs';

const OLDEST = 22;
const source = new URL('../src/cli.ts', import.meta.url);
const built = new URL('../dist/cli.js', import.meta.url);

const [major = 0] = process.versions.node.split('.').map(Number);
const isInstalled = import.meta.url.includes('/node_modules/');
const isSource = process.features.typescript && !isInstalled;
const runs = [...(isSource ? [source] : []), built].find((file) => existsSync(file));

if (major < OLDEST || runs === undefined) {
  const why =
    major < OLDEST
      ? `Node ${process.versions.node} is too old; accepted: ${OLDEST} or later`
      : `nothing is built, and Node ${process.versions.node} does not run TypeScript; accepted: a build, or Node 24`;
  process.stderr.write(`error: ${why}\n`);
  process.exitCode = 1;
} else {
  await import(runs.href);
}
