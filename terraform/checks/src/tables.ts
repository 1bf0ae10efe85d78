/**
 * The tables of variables and outputs in each module's README, made from what the module declares. Everything outside
 * the two marks is written by hand and kept.
 */
import { type Json, type JsonObject, type Module, textOf } from './module.ts';

const BEGIN = '<!-- made by `npm run tables -w terraform/checks` -->';
const END = '<!-- end -->';

/** The README with tables as they should be. Throws where the marks are not there. */
export function withTables(readme: string, module: Module): string {
  const from = readme.indexOf(BEGIN);
  const to = readme.indexOf(END);
  if (from === -1 || to < from) throw new Error(`${module.name}: its README has no place for the tables`);
  return `${readme.slice(0, from)}${BEGIN}\n\n${tables(module)}\n${readme.slice(to)}`;
}

function tables(module: Module): string {
  const variables = [...module.variables].toSorted(
    ([a, one], [b, other]) => order(one) - order(other) || (a < b ? -1 : 1),
  );
  const rows = variables.map(([name, variable]) => [
    `\`${name}\``,
    text(variable),
    typeOf(variable),
    standard(variable),
  ]);
  const outputs = [...module.outputs].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    table(['variable', 'meaning', 'type', 'default'], rows),
    ...(outputs.length === 0
      ? []
      : [
          table(
            ['output', 'meaning'],
            outputs.map(([name, output]) => [`\`${name}\``, text(output)]),
          ),
        ]),
  ].join('\n');
}

/** What must be given stands first. */
const order = (variable: JsonObject): number => (variable['default'] === undefined ? 0 : 1);

const text = (of: JsonObject): string => cell(textOf(of['description']));

function typeOf(variable: JsonObject): string {
  const type = textOf(variable['type']).replace(/^\$\{([\s\S]*)\}$/, '$1');
  return `\`${cell(
    type
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/([({]) /g, '$1')
      .replaceAll(/ ([)}])/g, '$1')
      .replaceAll(/(\)|\w) (\w+ =)/g, '$1, $2')
      .replaceAll(/ +=/g, ' ='),
  )}\``;
}

const standard = (variable: JsonObject): string =>
  variable['default'] === undefined ? 'required' : `\`${cell(shown(variable['default']))}\``;

const shown = (value: Json): string => JSON.stringify(value);

const cell = (value: string): string => value.replaceAll('|', '\\|').replaceAll('\n', ' ');

const table = (headings: readonly string[], rows: readonly (readonly string[])[]): string =>
  [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
