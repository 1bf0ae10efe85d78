import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from './errors.ts';
import {
  bytes,
  callable,
  checkOptions,
  duration,
  flag,
  listOf,
  oneOf,
  port,
  required,
  type Shape,
  objectOf,
  signal,
  text,
  whole,
} from './options.ts';
import { shownValue } from './shown-value.ts';

type Options = Readonly<{
  lease?: string;
  tries?: number;
  retry?: Readonly<{ min?: string }>;
  topic: string;
}>;
const SHAPE: Shape<Required<Options>> = {
  lease: duration,
  tries: whole(1),
  retry: objectOf<Readonly<{ min: string }>>({ min: duration }),
  topic: required(text),
};
const textFor = (options: unknown): string => {
  try {
    checkOptions<Options>(options, SHAPE);
    return '';
  } catch (error) {
    assert.ok(error instanceof ConfigError && error.code === 'INVALID_OPTION', String(error));
    return error.message;
  }
};

test('options that are right pass, and what is absent or undefined is not judged unless it is needed', () => {
  assert.equal(textFor({ topic: 't', lease: '1s', tries: 3, retry: { min: '1ms' } }), '');
  assert.equal(textFor({ topic: 't', lease: undefined }), '');
  assert.equal(textFor({}), 'topic is undefined; accepted: a text');
});

test('an unknown name is refused with the nearest, at any depth', () => {
  assert.equal(
    textFor({ topic: 't', leese: '1s' }),
    'leese is no option; accepted: lease (the nearest), tries, retry, topic',
  );
  assert.equal(
    textFor({ topic: 't', LEASE: '1s' }),
    'LEASE is no option; accepted: lease (the nearest), tries, retry, topic',
  );
  assert.equal(
    textFor({ topic: 't', nothingLikeIt: 1 }),
    'nothingLikeIt is no option; accepted: lease, tries, retry, topic',
  );
  assert.equal(
    textFor({ topic: 't', retry: { mim: '1s' } }),
    'retry.mim is no option; accepted: min (the nearest)',
  );
  assert.match(textFor(JSON.parse('{"topic":"t","__proto__":1}')), /^__proto__ is no option/);
});

test('a wrong value is refused with its path, itself and what is accepted', () => {
  assert.equal(
    textFor({ topic: 't', lease: 30 }),
    'lease is 30; accepted: a whole number and a unit of ms, s, m, h or d, for example "30s"',
  );
  assert.equal(textFor({ topic: 't', tries: 1.5 }), 'tries is 1.5; accepted: a whole number from 1');
  assert.equal(textFor({ topic: 't', retry: 5 }), 'retry is 5; accepted: an object with min');
  assert.equal(textFor('t'), 'options is "t"; accepted: an object with lease, tries, retry, topic');
  assert.equal(textFor([]), 'options is a list of 0; accepted: an object with lease, tries, retry, topic');
});

test('each check takes what it is for, and nothing else', () => {
  const { signal: aborting } = new AbortController();
  const good = [
    [callable, () => 1],
    [flag, false],
    [text, 'x'],
    [oneOf('a', 'b'), 'b'],
    [whole(0, 5), 5],
    [bytes, Buffer.alloc(0)],
    [signal, aborting],
    [listOf(text), ['a']],
    [port(['end'], 'a thing'), { end() {} }],
  ] as const;
  for (const [check, value] of good) {
    check('x', value);
    for (const [other, wrong] of good) {
      // A word is a text as well.
      if (other === check || (typeof wrong === 'string' && typeof value === 'string')) continue;
      assert.throws(() => check('x', wrong), {
        name: 'ConfigError',
        message: /^x(\[0\])? is .*; accepted: /,
      });
    }
  }
  assert.throws(() => whole(0, 5)('x', 6), { message: 'x is 6; accepted: a whole number from 0 to 5' });
  assert.throws(() => listOf(text)('x', ['a', 1]), { message: 'x[1] is 1; accepted: a text' });
});

test('a value is shown shortly, whatever it is, and nothing that an object holds', () => {
  class Client {
    readonly password = 'secret';
  }
  const shown = [
    undefined,
    null,
    5,
    true,
    5n,
    Symbol('s'),
    () => 1,
    {},
    [1, 2],
    new Client(),
    Object.create(null),
  ];
  assert.deepEqual(shown.map(shownValue), [
    'undefined',
    'null',
    '5',
    'true',
    'a bigint',
    'a symbol',
    'a function',
    'an object',
    'a list of 2',
    'an object of Client',
    'an object',
  ]);
  assert.equal(shownValue('x'.repeat(100)), `"${'x'.repeat(60)}…"`);
});
