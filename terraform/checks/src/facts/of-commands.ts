/**
 * The same facts, read out of what `deploy/gcloud.sh --dry-run` prints.
 */
import { PROJECT_NUMBER } from '../stand-in/outputs.ts';
import { type AppYaml, COMMANDS } from './command-readers.ts';
import type { Fact, Facts } from './facts.ts';

type Command = Readonly<{ words: readonly string[]; flags: Readonly<Record<string, string>> }>;

/** Throws for a command that is not known here: it would be compared with nothing. */
export function factsOfDryRun(output: string): Facts {
  const facts: Fact[] = [];
  const app: AppYaml = { service: '', variables: {} };
  for (const line of known(output)
    .split('\n')
    .filter((text) => text !== '')) {
    const yaml = /^# app\.yaml: (?:service: (.*)|(\w+)=(.*))$/.exec(line);
    if (yaml?.[1] !== undefined) app.service = yaml[1];
    if (yaml?.[2] !== undefined) app.variables[yaml[2]] = yaml[3] ?? '';
    if (!line.startsWith('#')) facts.push(...factsOf(commandOf(line), app));
  }
  return new Map(facts);
}

/** What only a project knows, as the stand-in answers it. */
const known = (output: string): string => {
  const region = /--region=([\w-]+)/.exec(output)?.[1] ?? '';
  return output
    .replaceAll('PROJECT_NUMBER', PROJECT_NUMBER)
    .replaceAll(
      /https:\/\/URL_OF_([\w-]+)/g,
      (_, name: string) => `https://${name}-${PROJECT_NUMBER}.${region}.run.app`,
    );
};

/** A line that `printf %q` wrote. */
function commandOf(line: string): Command {
  const all = [...line.matchAll(/(?:\\.|'[^']*'|[^\s\\'])+/g)].map(([word]) =>
    word.replaceAll(
      /\\(.)|'([^']*)'/g,
      (_, escaped: string | undefined, quoted: string | undefined) => escaped ?? quoted ?? '',
    ),
  );
  const flags = all
    .filter((word) => word.startsWith('--'))
    .map((word) => {
      const [name = '', ...value] = word.slice(2).split('=');
      return [name, value.join('=')] as const;
    });
  return { words: all.filter((word) => !word.startsWith('--')), flags: Object.fromEntries(flags) };
}

function factsOf({ words, flags }: Command, app: AppYaml): readonly Fact[] {
  const path = words.slice(1).join(' ');
  const flag = (name: string): string => flags[name] ?? '';
  const [reader] = COMMANDS.filter(({ prefix }) => path.startsWith(prefix));
  if (reader === undefined) throw new Error(`gcloud ${path} is not compared with anything`);
  const rest = path.slice(reader.prefix.length).trim();
  return reader.read(rest, flag, app);
}
