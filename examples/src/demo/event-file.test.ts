import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { generateEvents } from '../events/generate.ts';
import { parseEvents, readEvents } from './event-file.ts';
import { UsageError } from './options.ts';

const NOW = Date.parse('2030-01-31T08:00:00Z');
const parse = (text: string) => parseEvents(text, 'my.ndjson', NOW);
const shipped = fileURLToPath(new URL('../../events.ndjson', import.meta.url));

test('reads every field, with defaults, and skips blank lines', () => {
  const text =
    '{"topic":"fifo-in","publisher":"p2","afterMs":350,"dataBase64":"AP/+gMMo","attributes":{"sequence":"1"},"orderingKey":"k"}\r\n\n{"topic":"dedup-in","data":"ü"}\n';
  const [first, second] = parse(text);
  assert.deepEqual(first, {
    line: 1,
    topic: 'fifo-in',
    publisher: 'p2',
    afterMs: 350,
    data: Buffer.from('00fffe80c328', 'hex'),
    attributes: { sequence: '1' },
    orderingKey: 'k',
  });
  assert.deepEqual(second, {
    line: 3,
    topic: 'dedup-in',
    publisher: 'p1',
    afterMs: 0,
    data: Buffer.from('ü'),
    attributes: {},
  });
});

const attributes = (value: unknown): string =>
  JSON.stringify({ topic: 'delay-in', data: 'x', attributes: value });
const many = Object.fromEntries(Array.from({ length: 97 }, (_, index) => [`a${index}`, 'x']));

const bad: readonly (readonly [string, string, RegExp])[] = [
  ['not JSON', '{"topic":', /not JSON .*accepted: one JSON object/],
  ['an array', '[1]', /the line is \[1\]; accepted: one JSON object/],
  ['an unknown field', '{"topic":"dedup-in","datta":"x"}', /unknown field "datta"; accepted: topic, /],
  ['no topic', '{"data":"x"}', /field topic is missing; accepted: one of dedup-in, delay-in, /],
  ['an unknown topic', '{"topic":"orders","data":"x"}', /field topic is "orders"; accepted: one of/],
  ['a wrong publisher', '{"topic":"dedup-in","data":"x","publisher":3}', /field publisher is 3; accepted/],
  [
    'afterMs as text',
    '{"topic":"dedup-in","data":"x","afterMs":"5"}',
    /field afterMs is "5"; accepted: a whole/,
  ],
  ['a negative afterMs', '{"topic":"dedup-in","data":"x","afterMs":-1}', /field afterMs is -1; accepted/],
  ['a late afterMs', '{"topic":"dedup-in","data":"x","afterMs":600001}', /field afterMs is 600001; accepted/],
  [
    'data that is no string',
    '{"topic":"dedup-in","data":{"a":1}}',
    /field data is \{"a":1\}; accepted: a string/,
  ],
  [
    'both kinds of data',
    '{"topic":"dedup-in","data":"x","dataBase64":"eA=="}',
    /field dataBase64 is .*not together/,
  ],
  [
    'bad base64',
    '{"topic":"dedup-in","dataBase64":"%%%"}',
    /field dataBase64 is "%%%"; accepted: standard base64/,
  ],
  ['base64 without padding', '{"topic":"dedup-in","dataBase64":"eA"}', /field dataBase64 is "eA"; accepted/],
  ['attributes as a list', attributes(['x']), /field attributes is \["x"\]; accepted: an object of strings/],
  ['a number as attribute', attributes({ delay: 5 }), /field attributes\.delay is 5; accepted: a string/],
  ['null as attribute', attributes({ delay: null }), /field attributes\.delay is null; accepted: a string/],
  [
    'a toolkit attribute',
    attributes({ originPublishTime: 'x' }),
    /attributes\.originPublishTime is .*toolkit sets it/,
  ],
  [
    'what the client would replace',
    attributes({ a: '{{projectId}}' }),
    /attributes\.a is .*Google's client replaces/,
  ],
  ['a reserved attribute', attributes({ GoogFoo: 'x' }), /attribute "GoogFoo" begins with "goog"/],
  [
    'a long attribute',
    attributes({ a: 'é'.repeat(513) }),
    /attribute "a" has 1026 bytes; accepted: at most 1024/,
  ],
  ['too many attributes', attributes(many), /field attributes has 97 entries; accepted: at most 96/],
  ['nothing in it', '{"topic":"dedup-in"}', /neither data nor attributes; accepted/],
  [
    'an empty ordering key',
    '{"topic":"dedup-in","data":"x","orderingKey":""}',
    /field orderingKey is ""; accepted/,
  ],
  ['a long wait', attributes({ delay: '601' }), /field attributes\.delay is "601"; accepted: at most 600 s/],
  [
    'a far due time',
    attributes({ deliverAt: '2030-02-01T08:00:00Z' }),
    /attributes\.deliverAt is .*at most 600 s/,
  ],
];

for (const [name, line, message] of bad) {
  test(`refuses ${name} on one line that names file and line number`, () => {
    assert.throws(
      () => parse(`{"topic":"dedup-in","data":"fine"}\n${line}\n`),
      (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /^my\.ndjson:2: /);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
  });
}

test('leaves invalid attributes of the wire contract to the toolkit', () => {
  const texts = [
    { delay: 'soon' },
    { delay: '-1' },
    { sequence: '0' },
    { deliverAt: 'tomorrow' },
    { cancel: 'no' },
  ];
  assert.equal(parse(texts.map(attributes).join('\n')).length, texts.length);
});

test('keeps an attribute that is named like a property of objects', () => {
  const [event] = parse('{"topic":"dedup-in","attributes":{"__proto__":"x"}}');
  assert.deepEqual(Object.entries(event!.attributes), [['__proto__', 'x']]);
});

test('refuses an empty file and too many publishers', () => {
  assert.throws(() => parse('\n \n'), /my\.ndjson: no events; accepted/);
  const lines = Array.from(
    { length: 11 },
    (_, index) => `{"topic":"dedup-in","publisher":"p${index}","data":"x"}`,
  );
  assert.throws(
    () => parse(lines.join('\n')),
    /my\.ndjson:11: field publisher is "p10", number 11; accepted: at most 10/,
  );
});

test('names a file that is missing, and one that is a folder', async () => {
  await assert.rejects(
    readEvents('/nowhere/x.ndjson', NOW),
    /^UsageError|\/nowhere\/x\.ndjson: no such file; accepted/,
  );
  await assert.rejects(readEvents('/', NOW), /\/: is a directory; accepted/);
});

test('the shipped file is what the generator writes, and has what the demo is about', async () => {
  assert.equal(await readFile(shipped, 'utf8'), generateEvents());
  const events = await readEvents(shipped, NOW);
  assert.ok(events.length >= 300);
  const ids = events
    .map(({ topic, attributes: { dedupId } }) => dedupId && `${topic} ${dedupId}`)
    .filter(Boolean);
  assert.ok(ids.length - new Set(ids).size > 30, 'repeated publishes');
  const delays = new Set(events.map((event) => event.attributes['delay']).filter(Boolean));
  for (const seconds of ['1', '2', '3', '4', '5'])
    assert.ok(delays.delete(seconds), `a delay of ${seconds} s`);
  assert.equal(delays.size, 0);
  const sequenced = events.filter(({ topic, attributes: { sequence } }) => topic === 'fifo-in' && sequence);
  assert.equal(new Set(sequenced.map((event) => event.attributes['sequenceKey'])).size, 10);
  for (const key of new Set(sequenced.map((event) => event.attributes['sequenceKey']))) {
    const own = sequenced.filter((event) => event.attributes['sequenceKey'] === key);
    assert.equal(new Set(own.map(({ publisher }) => publisher)).size, 3);
    assert.notDeepEqual(
      own.map((event) => Number(event.attributes['sequence'])),
      own.map((_, index) => index + 1),
    );
  }
  assert.ok(
    events.some(({ data }) => !data.equals(Buffer.from(data.toString('utf8')))),
    'binary payloads',
  );
  assert.ok(
    events.some(({ data }) => data.length === 0),
    'attribute-only messages',
  );
});
