import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isAsExpected } from './prelude.ts';

/** What `program` prints, in a process in which the prelude came first, as in a package. */
async function behindPrelude(program: string): Promise<unknown> {
  const prelude = fileURLToPath(new URL('./prelude.ts', import.meta.url));
  const all = `import { createRequire } from 'node:module';
    await import(${JSON.stringify(prelude)});
    const require = createRequire(${JSON.stringify(prelude)});
    const firestore = createRequire(require.resolve('@google-cloud/firestore'));
    ${program}`;
  const flags = ['--conditions=source', '--input-type=module', '--eval', all];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 120_000 });
  return JSON.parse(stdout);
}

/** True until code has read an export of it. */
const RAN = `const standsIn = (path) => require('node:util').types.isProxy(require.cache[path]?.exports);`;

test('this google-gax has what is replaced, and these clients have what is stood in for', () => {
  assert.deepEqual(isAsExpected, { messageClasses: true, transportWithoutGrpc: true, loadProtoJSON: true });
});

test('neither google-gax nor a client loads what is stood in for', async () => {
  const stillStoodIn = await behindPrelude(`${RAN}
    require('@google-cloud/pubsub');
    require('@google-cloud/tasks');
    new (require('@google-cloud/firestore').Firestore)({ projectId: 'p' }).batch();
    const known = Object.keys(require.cache).filter(standsIn);
    console.log(JSON.stringify(known.map((path) => path.slice(path.lastIndexOf('node_modules/') + 13))));`);
  assert.deepEqual((stillStoodIn as string[]).toSorted(), [
    '@google-cloud/pubsub-api/build/protos/protos.js',
    '@google-cloud/pubsub/build/protos/protos.js',
    '@google-cloud/tasks/build/cjs/protos/protos.js',
    'google-gax/build/protos/iam_service.js',
    'google-gax/build/protos/locations.js',
    'google-gax/build/protos/operations.js',
    'google-gax/build/src/fallback.js',
  ]);
});

test("what is taken from the other transport without loading it is that transport's own", async () => {
  const same = await behindPrelude(`${RAN}
    const path = firestore.resolve('google-gax/fallback');
    const gax = require('google-gax');
    const names = ['constructSettings', 'createDefaultBackoffSettings', 'GoogleError', 'RetryOptions'];
    const before = names.map((name) => gax.fallback[name]);
    const wasStandIn = standsIn(path);
    const own = gax.fallback.GrpcClient === require(path).GrpcClient && require(path);
    const json = { nested: { M: { fields: { f: { type: 'string', id: 1 } } } } };
    const root = gax.protobufFromJSON(json);
    console.log(JSON.stringify({
      wasStandIn,
      isStandIn: standsIn(path),
      same: names.map((name, index) => before[index] === own[name]),
      type: root.lookupType('M').name,
      classes: typeof gax.IamProtos.google.iam.v1.Policy.encode,
    }));`);
  assert.deepEqual(same, {
    wasStandIn: true,
    isStandIn: false,
    same: [true, true, true, true],
    type: 'M',
    classes: 'function',
  });
});
