/** The filter language: what is delivered, and what does not parse. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { FILTERS } from '../sources.ts';
import { text, type PubsubWorld } from '../world.ts';

const make = of('Filters');
const SUB = 'orders-sub';
type Attributes = Readonly<Record<string, string>>;

/** Published each time; the names are what a case expects. */
const MESSAGES: Readonly<Record<string, Attributes>> = {
  com: { domain: 'com', name: 'a' },
  org: { domain: 'org', lang: 'en' },
  'org-de': { domain: 'org', lang: 'de-CH' },
  'upper-com': { domain: 'COM' },
  quoted: { 'iana.org/language_tag': 'en', note: 'say "hi"' },
  none: {},
  empty: { lang: '' },
};

const MATCHES: readonly (readonly [string, string, readonly string[]])[] = [
  ['an attribute is there', 'attributes:domain', ['com', 'org', 'org-de', 'upper-com']],
  ['an attribute is not there', 'NOT attributes:domain', ['quoted', 'none', 'empty']],
  ['an attribute is there though it is empty', 'attributes:lang', ['org', 'org-de', 'empty']],
  ['a value is equal, in its case', 'attributes.domain = "com"', ['com']],
  [
    'a value differs or is not there',
    'attributes.domain != "com"',
    ['org', 'org-de', 'upper-com', 'quoted', 'none', 'empty'],
  ],
  ['a value has a prefix', 'hasPrefix(attributes.lang, "de")', ['org-de']],
  [
    'a value has not a prefix',
    'NOT hasPrefix(attributes.lang, "de")',
    ['com', 'org', 'upper-com', 'quoted', 'none', 'empty'],
  ],
  ['both hold with AND', 'attributes.domain = "org" AND attributes.lang = "en"', ['org']],
  ['either holds with OR', 'attributes.domain = "com" OR attributes.lang = "en"', ['com', 'org']],
  [
    'three terms are joined with AND',
    'attributes:domain AND attributes:lang AND attributes.lang != "en"',
    ['org-de'],
  ],
  ['a minus negates like NOT', 'attributes:domain AND -attributes:lang', ['com', 'upper-com']],
  [
    'parentheses join AND and OR',
    'attributes:lang AND (attributes.domain = "com" OR attributes.domain = "org")',
    ['org', 'org-de'],
  ],
  ['NOT stands before parentheses', 'NOT (attributes:domain OR attributes:lang)', ['quoted', 'none']],
  ['a key is quoted', 'attributes:"iana.org/language_tag"', ['quoted']],
  ['a quoted key has a value', 'attributes."iana.org/language_tag" = "en"', ['quoted']],
  ['a value holds escaped quotes', 'attributes.note = "say \\"hi\\""', ['quoted']],
];

const BAD: readonly (readonly [string, string])[] = [
  ['Unbalanced parentheses', '((attributes:a'],
  ['AND and OR without parentheses', 'attributes:a AND attributes:b OR attributes:c'],
  ['A value without quotes', 'attributes.a = b'],
  ['A lowercase operator', 'attributes:a and attributes:b'],
  ['A filter on the data', 'data = "x"'],
  ['A key that needs quotes and has none', 'attributes:iana.org/tag'],
  ['An unknown function', 'hasSuffix(attributes.a, "x")'],
  ['An unknown comparison', 'attributes.a > "x"'],
  ['A string that does not end', 'attributes.a = "x'],
  ['A filter of words', 'everything please'],
];

const filterOf = (size: number): string => `attributes:${'k'.repeat(size - 'attributes:'.length)}`;

async function matching(world: PubsubWorld, filter: string): Promise<string[]> {
  await world.create('orders', SUB, { filter });
  await world.create('orders', 'all-sub');
  for (const [name, attributes] of Object.entries(MESSAGES)) {
    await world.publish('orders', { data: Buffer.from(name), attributes });
  }
  // When these have come, those of the filtered subscription are there as well.
  const all = Object.keys(MESSAGES).length;
  same((await world.receive('all-sub', all)).length, all);
  return [...(await world.pull(SUB)), ...(await world.pull(SUB))].map(text);
}

export const filters: readonly PubsubCase[] = [
  ...MATCHES.map(([what, filter, expected]) =>
    make(`Delivers where ${what}: ${filter}`, FILTERS, async (world) => {
      same((await matching(world, filter)).toSorted(), expected.toSorted());
    }),
  ),
  ...BAD.map(([what, filter]) =>
    make(`${what} is INVALID_ARGUMENT: ${filter}`, FILTERS, (world) =>
      refused(world.create('orders', SUB, { filter }), 'INVALID_ARGUMENT', `the filter ${filter}`),
    ),
  ),
  make('A filter of 256 bytes is accepted', FILTERS, async (world) => {
    await accepted(world.create('orders', SUB, { filter: filterOf(256) }), '256 bytes');
  }),
  make('A filter of 257 bytes is INVALID_ARGUMENT', FILTERS, (world) =>
    refused(world.create('orders', SUB, { filter: filterOf(257) }), 'INVALID_ARGUMENT', '257 bytes'),
  ),
  make('GetSubscription shows the filter as it was given', FILTERS, async (world) => {
    const filter = 'attributes.a   = "x"';
    await world.create('orders', SUB, { filter });
    const found = await world.call('GetSubscription', { subscription: world.subscription(SUB) });
    same(found['filter'], filter);
  }),
  make('What does not match does not hold back an ordering key', FILTERS, async (world) => {
    await world.create('orders', SUB, { filter: 'attributes:wanted', enableMessageOrdering: true });
    await world.publish('orders', { data: Buffer.from('no'), orderingKey: 'k' });
    await world.publish('orders', { data: Buffer.from('yes'), orderingKey: 'k', attributes: { wanted: '' } });
    same((await world.receive(SUB, 1)).map(text), ['yes']);
  }),
];
