/**
 * `tables` writes the tables in the modules' READMEs; `plans` writes the kept plans, for which Terraform must be there;
 * `lost` reads a plan of yours from its standard input, and ends with 1 when something would be lost.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { lost, type ShownPlan } from './lost.ts';
import { readModules } from './module.ts';
import { digestOfSources, KEPT, plan, planFile } from './plans.ts';
import { withTables } from './tables.ts';
import { terraform, TERRAFORM_FOLDER } from './terraform.ts';

const COMMANDS: Readonly<Record<string, () => Promise<void>>> = { tables, plans, lost: tellLost };

async function tables(): Promise<void> {
  for (const module of (await readModules(TERRAFORM_FOLDER)).values()) {
    const file = join(module.folder, 'README.md');
    await writeFile(file, withTables(await readFile(file, 'utf8'), module));
  }
}

async function plans(): Promise<void> {
  const there = await terraform();
  if (there === undefined) throw new Error('terraform is not on the path');
  try {
    for (const name of KEPT) {
      const resources = await plan(there, name);
      const text = JSON.stringify({ sources: await digestOfSources(), resources }, undefined, 2);
      await writeFile(planFile(name), `${text}\n`);
      console.log(`${name}: ${resources.length} resources`);
    }
  } finally {
    await there.close();
  }
}

async function tellLost(): Promise<void> {
  const lines = lost(JSON.parse(await text(process.stdin)) as ShownPlan);
  for (const line of lines) console.log(line);
  if (lines.length === 0) console.log('nothing that holds messages is destroyed or replaced');
  else process.exitCode = 1;
}

const command = COMMANDS[process.argv[2] ?? ''];
if (command === undefined) {
  console.error(`usage: cli.ts ${Object.keys(COMMANDS).join('|')}`);
  process.exitCode = 2;
} else await command();
