import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unzipSync } from 'fflate';
import { archive } from './archive.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test('the order in which files are given does not matter, and what is in them does', () => {
  const one = archive(
    new Map([
      ['a/b.js', bytes('b')],
      ['a.js', bytes('a')],
    ]),
  );
  const other = archive(
    new Map([
      ['a.js', bytes('a')],
      ['a/b.js', bytes('b')],
    ]),
  );
  assert.deepEqual(one, other);
  assert.notDeepEqual(
    one,
    archive(
      new Map([
        ['a.js', bytes('A')],
        ['a/b.js', bytes('b')],
      ]),
    ),
  );
  assert.deepEqual(Object.keys(unzipSync(one)), ['a.js', 'a/b.js']);
  assert.deepEqual(unzipSync(one)['a/b.js'], bytes('b'));
});

test('every entry has the same time and may be read by every account, whatever the zone', () => {
  const before = process.env['TZ'];
  const made = ['UTC', 'Pacific/Auckland', 'America/Caracas'].map((zone) => {
    process.env['TZ'] = zone;
    return Buffer.from(archive(new Map([['a.js', bytes('a')]])));
  });
  if (before === undefined) delete process.env['TZ'];
  else process.env['TZ'] = before;
  const [utc, ...others] = made;
  for (const other of others) assert.deepEqual(other, utc);
  const central = utc!.indexOf(Buffer.from([0x50, 0x4b, 0x01, 0x02]));
  // https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.12: time, date, external attributes.
  assert.equal(utc!.readUInt16LE(central + 12), 0);
  assert.equal(utc!.readUInt16LE(central + 14), (0 << 9) | (1 << 5) | 1);
  assert.equal(utc!.readUInt32LE(central + 38) >>> 16, 0o100644);
});
