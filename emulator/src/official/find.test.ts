import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { findOfficial } from './find.ts';

type Machine = Readonly<{
  root: string;
  env: NodeJS.ProcessEnv;
  /** An empty file; with a text, a program of the shell. Returns its path. */
  put(path: string, program?: string): string;
}>;

/** A machine with nothing on it but the shell; a java if its version is given. */
function machine(t: TestContext, javaVersion?: string): Machine {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'official-')));
  t.after(() => rmSync(root, { recursive: true }));
  const put = (path: string, program?: string): string => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, program === undefined ? '' : `#!/bin/sh\n${program}\n`);
    if (program !== undefined) chmodSync(file, 0o755);
    return file;
  };
  put('bin/nothing');
  if (javaVersion !== undefined) put('bin/java', `echo 'openjdk version "${javaVersion}" 2025-04-15' >&2`);
  return { root, env: { PATH: join(root, 'bin'), FIREBASE_EMULATORS_PATH: join(root, 'cache') }, put };
}

const SDK_JARS = {
  pubsub: 'sdk/platform/pubsub-emulator/lib/cloud-pubsub-emulator-0.8.20-all.jar',
  firestore: 'sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar',
};

function withSdk({ root, put }: Machine): Readonly<typeof SDK_JARS> {
  put(SDK_JARS.pubsub);
  put(SDK_JARS.firestore);
  put('sdk/bin/gcloud', 'exit 1');
  symlinkSync(join(root, 'sdk/bin/gcloud'), join(root, 'bin/gcloud'));
  return { pubsub: join(root, SDK_JARS.pubsub), firestore: join(root, SDK_JARS.firestore) };
}

function missing(env: NodeJS.ProcessEnv): string {
  const found = findOfficial({ env });
  assert.ok(!found.ok);
  assert.ok(!found.missing.includes('\n'), 'one line');
  return found.missing;
}

test('follows gcloud to its SDK folder, without running it', (t) => {
  const here = machine(t, '17.0.15');
  const jars = withSdk(here);
  const snapshot = [{ id: 'cloud-firestore-emulator', version: { version_string: '1.19.9' } }];
  writeFileSync(
    here.put('sdk/.install/cloud-firestore-emulator.snapshot.json'),
    JSON.stringify({ components: snapshot }),
  );
  assert.deepEqual(findOfficial({ env: here.env }), {
    ok: true,
    java: 'java',
    javaVersion: 17,
    jars,
    versions: 'Pub/Sub 0.8.20 and Firestore 1.19.9 on Java 17',
  });
});

test('asks gcloud where it is a wrapper, and takes CLOUDSDK_ROOT_DIR before it', (t) => {
  const here = machine(t, '21');
  const jars = { pubsub: here.put(SDK_JARS.pubsub), firestore: here.put(SDK_JARS.firestore) };
  here.put('bin/gcloud', `[ "$1" = info ] && echo ${join(here.root, 'sdk')}`);
  const versions = 'Pub/Sub 0.8.20 and Firestore (of an unknown version) on Java 21';
  const expected = { ok: true, java: 'java', javaVersion: 21, jars, versions };
  assert.deepEqual(findOfficial({ env: here.env }), expected);
  here.put('bin/gcloud', 'exit 1');
  const env = { ...here.env, CLOUDSDK_ROOT_DIR: join(here.root, 'sdk') };
  assert.deepEqual(findOfficial({ env }), expected);
});

test("takes the newest in firebase-tools' cache before gcloud's", (t) => {
  const here = machine(t, '17');
  withSdk(here);
  const library = (version: string): string =>
    `cache/pubsub-emulator-${version}/pubsub-emulator/lib/cloud-pubsub-emulator-${version}-all.jar`;
  here.put(library('0.8.9'));
  const pubsub = here.put(library('0.8.14'));
  here.put('cache/cloud-firestore-emulator-v1.9.8.jar');
  const firestore = here.put('cache/cloud-firestore-emulator-v1.19.8.jar');
  const found = findOfficial({ env: here.env });
  assert.deepEqual(found.ok && found.jars, { pubsub, firestore });
});

test("takes what firebase-tools' variables name before all else, launcher script or jar", (t) => {
  const here = machine(t, '17');
  withSdk(here);
  const jar = here.put('own/lib/cloud-pubsub-emulator-0.9.0-all.jar');
  const firestore = here.put('own/wrapper.jar');
  for (const named of [here.put('own/bin/cloud-pubsub-emulator'), jar]) {
    const env = {
      ...here.env,
      PUBSUB_EMULATOR_BINARY_PATH: named,
      FIRESTORE_EMULATOR_BINARY_PATH: firestore,
    };
    const found = findOfficial({ env });
    assert.deepEqual(found.ok && found.jars, { pubsub: jar, firestore });
  }
  const script = here.put('other/cloud_firestore_emulator');
  const beside = here.put('other/cloud-firestore-emulator.jar');
  const env = { ...here.env, FIRESTORE_EMULATOR_BINARY_PATH: script };
  const found = findOfficial({ services: ['firestore'], env });
  assert.deepEqual(found.ok && found.jars, { firestore: beside });
});

test('does not pass over a variable that leads nowhere', (t) => {
  const here = machine(t, '17');
  withSdk(here);
  const env = { ...here.env, PUBSUB_EMULATOR_BINARY_PATH: '/nowhere/x' };
  assert.equal(missing(env), 'PUBSUB_EMULATOR_BINARY_PATH leads to no jar of the emulator: /nowhere/x');
  assert.equal(missing({ ...here.env, JAVA_HOME: '/nowhere' }), 'JAVA_HOME has no bin/java: /nowhere');
});

test('says in one line what is missing and what to install', (t) => {
  const nothing = machine(t);
  assert.equal(
    missing(nothing.env),
    "Google's Pub/Sub and Firestore emulators are not installed: install the Google Cloud CLI, then gcloud components " +
      'install pubsub-emulator cloud-firestore-emulator; no java on the PATH: install Java 11 or newer',
  );
  const half = machine(t, '17');
  withSdk(half);
  rmSync(join(half.root, SDK_JARS.firestore));
  assert.equal(
    missing(half.env),
    "Google's Firestore emulator is not installed: gcloud components install cloud-firestore-emulator",
  );
  assert.ok(findOfficial({ services: ['pubsub'], env: half.env }).ok, 'the other one can be had');
});

test('says that a Java is too old, the old way of counting included', (t) => {
  for (const [version, counted] of [
    ['1.8.0_402', 8],
    ['10.0.2', 10],
  ] as const) {
    const here = machine(t, version);
    withSdk(here);
    assert.equal(missing(here.env), `java is Java ${counted}, and the emulators need Java 11 or newer`);
  }
});

test("takes JAVA_HOME's java before the one on the PATH", (t) => {
  const here = machine(t, '1.8.0_402');
  withSdk(here);
  const java = here.put('jdk/bin/java', `echo 'java version "25"' >&2`);
  const found = findOfficial({ env: { ...here.env, JAVA_HOME: join(here.root, 'jdk') } });
  assert.deepEqual(found.ok && [found.java, found.javaVersion], [java, 25]);
});
