import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@google-cloud/pubsub';
import { parseFilter } from './filter.ts';
import { subscriptionName, testServer, topicName, until } from './test-server.ts';

const keysOf = (filter: string, messages: Record<string, Record<string, string>>): string =>
  Object.entries(messages)
    .filter(([, attributes]) => parseFilter(filter)(attributes))
    .map(([name]) => name)
    .join();

const MESSAGES = {
  a: { kind: 'a', lang: 'en' },
  ab: { kind: 'ab' },
  none: {},
  other: { lang: 'de', 'iana.org/tag': 'x', NOT: '1' },
};

test('evaluates every operator of the language', () => {
  const cases = {
    '': 'a,ab,none,other',
    'attributes:kind': 'a,ab',
    'attributes.kind = "a"': 'a',
    'attributes.kind="a"': 'a',
    'attributes.kind != "a"': 'ab,none,other',
    'hasPrefix(attributes.kind, "a")': 'a,ab',
    'hasPrefix( attributes.kind , "" )': 'a,ab',
    'NOT attributes:kind': 'none,other',
    '-attributes:kind': 'none,other',
    'NOT attributes:kind AND attributes:lang': 'other',
    'NOT (attributes:kind AND attributes:lang)': 'ab,none,other',
    '-(attributes:kind OR attributes:lang)': 'none',
    'attributes:kind AND -attributes:lang': 'ab',
    'attributes.kind = "a" OR attributes.kind = "ab" OR attributes.lang = "de"': 'a,ab,other',
    '(attributes:kind AND attributes:lang) OR attributes.lang = "de"': 'a,other',
    '((attributes:kind))\n AND\t(attributes:lang OR attributes:x)': 'a',
    'attributes."iana.org/tag" = "x"': 'other',
    'attributes:"iana.org/tag"': 'other',
    'attributes:NOT': 'other',
    'attributes.kind = "A"': '',
    'attributes:toString': '',
    'attributes.toString != "a"': 'a,ab,none,other',
  };
  for (const [filter, expected] of Object.entries(cases)) {
    assert.equal(keysOf(filter, MESSAGES), expected, filter);
  }
});

test('reads the escape sequences of string literals', () => {
  const values = {
    '"\\"\\\\"': '"\\',
    '"\\x41\\u00fc\\U0001F680\\101\\n"': 'Aü🚀A\n',
    '"ü 日本 🚀 AND ("': 'ü 日本 🚀 AND (',
  };
  for (const [literal, k] of Object.entries(values)) {
    assert.ok(parseFilter(`attributes.k = ${literal}`)({ k }), literal);
  }
});

test('refuses what does not parse and names the place', async (t) => {
  const { call, create } = await testServer(t);
  await create('orders', 'first');
  const cases: Record<string, string> = {
    ' ': `'attributes', 'hasPrefix', 'NOT' or '(' expected at character 2, found the end.`,
    '((': `'attributes', 'hasPrefix', 'NOT' or '(' expected at character 3, found the end.`,
    '(attributes:a': `')' expected at character 14, found the end.`,
    'attributes:a)': `'AND', 'OR' or the end expected at character 13, found ')'.`,
    attributes: `'.' or ':' expected at character 11, found the end.`,
    'attributes.a': `'=' or '!=' expected at character 13, found the end.`,
    'attributes.a = b': `a string in double quotes expected at character 16, found 'b'.`,
    "attributes.a = 'b'": `a string in double quotes expected at character 16, found ''b''.`,
    '"b" = attributes.a': `'attributes', 'hasPrefix', 'NOT' or '(' expected at character 1, found '"b" = attrib'.`,
    'attributes.a = "b': `a closing double quote expected at character 18, found the end.`,
    'attributes.a = "\\q"': `an escape sequence expected at character 17, found '\\q"'.`,
    'attributes.a > "b"': `'=' or '!=' expected at character 14, found '> "b"'.`,
    'attributes.a.b = "c"': `'=' or '!=' expected at character 13, found '.b = "c"'.`,
    'attributes:a and attributes:b': `'AND', 'OR' or the end expected at character 14, found 'and attribut'.`,
    'attributes:a attributes:b': `'AND', 'OR' or the end expected at character 14, found 'attributes:b'.`,
    'attributes:a AND': `'attributes', 'hasPrefix', 'NOT' or '(' expected at character 17, found the end.`,
    'attributes:a AND attributes:b OR attributes:c': `parentheses around what AND and OR combine expected at character 31, found 'OR attribute'.`,
    'attributes:a OR attributes:b AND attributes:c': `parentheses around what AND and OR combine expected at character 30, found 'AND attribut'.`,
    'hasPrefix(attributes.a, b)': `a string in double quotes expected at character 25, found 'b)'.`,
    'hasPrefix(attributes:a, "b")': `'.' expected at character 21, found ':a, "b")'.`,
    'data = "x"': `'attributes', 'hasPrefix', 'NOT' or '(' expected at character 1, found 'data = "x"'.`,
  };
  const wanted = { name: subscriptionName('second'), topic: topicName('orders') };
  for (const [filter, problem] of Object.entries(cases)) {
    await assert.rejects(
      call('CreateSubscription', { ...wanted, filter }),
      { code: 3, details: `Invalid filter given (filter=${filter}): ${problem}` },
      filter,
    );
  }
  const filter = (rest: string): string => `attributes:"${'é'.repeat(121)}${rest}"`;
  await assert.rejects(call('CreateSubscription', { ...wanted, filter: filter('ab') }), {
    code: 3,
    details: /^Invalid filter given: it has 257 bytes, and the maximum is 256/,
  });
  await call('CreateSubscription', { ...wanted, filter: filter('a') });
});

test('the real client gets what matches; the rest is acknowledged and nowhere in the backlog', async (t) => {
  const { pubsub, server, pull, create } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const filter = 'attributes.kind = "a" AND NOT attributes:test';
  const [subscription] = await topic.createSubscription('filtered', { filter });
  assert.equal((await subscription.getMetadata())[0].filter, filter);
  await create('orders', 'unfiltered');
  await topic.publishMessage({ data: Buffer.from('no'), attributes: { kind: 'b' } });
  await topic.publishMessage({ data: Buffer.from('no'), attributes: { kind: 'a', test: '' } });
  await topic.publishMessage({ data: Buffer.from('no') });
  assert.equal(server.stats().backlog, 3, 'of the unfiltered subscription alone');
  const got: Message[] = [];
  subscription.on('message', (message: Message) => {
    got.push(message);
    message.ack();
  });
  await topic.publishMessage({ data: Buffer.from('yes'), attributes: { kind: 'a' } });
  await until(() => got.length === 1 && server.stats().outstanding === 0);
  await subscription.close();
  assert.deepEqual(
    got.map(({ data }) => data.toString()),
    ['yes'],
  );
  assert.equal((await pull('unfiltered')).length, 4);
});

test('a filter can never be changed', async (t) => {
  const { call, create } = await testServer(t);
  await create('orders', 'filtered', { filter: 'attributes:a' });
  const subscription = { name: subscriptionName('filtered'), filter: 'attributes:b' };
  await assert.rejects(call('UpdateSubscription', { subscription, updateMask: { paths: ['filter'] } }), {
    code: 3,
    details: /'filter' cannot be updated/,
  });
  const changed = { name: subscriptionName('filtered'), ackDeadlineSeconds: 20 };
  const updateMask = { paths: ['ack_deadline_seconds'] };
  assert.equal(
    (await call('UpdateSubscription', { subscription: changed, updateMask }))['filter'],
    'attributes:a',
  );
});
