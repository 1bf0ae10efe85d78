import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loopbackLookup, remoteTarget } from './loopback.ts';

test('knows an address of this machine by its number, however it is written', () => {
  for (const url of [
    'http://127.0.0.1:1/',
    'http://127.8.8.8/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://0x7f.1/',
  ]) {
    assert.equal(remoteTarget(new URL(url)), undefined, url);
  }
  for (const url of [
    'http://10.0.0.1/',
    'http://0.0.0.0/',
    'http://169.254.169.254/',
    'http://[::]/',
    'http://[fe80::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://2130706434.1/',
  ]) {
    if (URL.canParse(url))
      assert.match(remoteTarget(new URL(url)) ?? '', /is not an address of this machine; accepted: /, url);
  }
});

test('a name is judged by what it resolves to', async () => {
  const resolved = (name: string, all: boolean) =>
    new Promise((resolve) => {
      loopbackLookup(name, { all }, (error, address) => resolve(error?.message ?? address));
    });
  assert.ok(['127.0.0.1', '::1'].includes(String(await resolved('localhost', false))));
  assert.ok(Array.isArray(await resolved('localhost', true)));
  // A number is its own answer, as a name server’s would be.
  assert.match(
    String(await resolved('192.0.2.1', false)),
    /^192\.0\.2\.1 \(192\.0\.2\.1\) is not an address/,
  );
  assert.match(String(await resolved('192.0.2.1', true)), /is not an address of this machine/);
});
