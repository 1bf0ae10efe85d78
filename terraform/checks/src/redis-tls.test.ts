/**
 * What the modules give a function for its Redis (URL, password and certificates, in that form) is enough to connect:
 * tried with a real Redis server with TLS and a password, and with the function's own client, in a process of its own,
 * because Node reads the certificates as it starts.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { at } from './facts/values.ts';
import { readPlan } from './plans.ts';

const PASSWORD = 'a-password';
const lacks = ['redis-server', 'openssl'].filter(
  (name) => spawnSync(name, [name === 'openssl' ? 'version' : '--version']).status !== 0,
);
const skip = lacks.length > 0 && `not on the path: ${lacks.join(', ')}`;
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const run = promisify(execFile);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const openssl = async (folder: string, ...args: readonly string[]): Promise<void> =>
  void (await run('openssl', args, { cwd: folder }));

async function authority(folder: string, name: string): Promise<string> {
  const key = [...NEW_KEY, '-keyout', `${name}.key`];
  await openssl(folder, 'req', '-x509', ...key, '-out', `${name}.pem`, '-days', '2', '-subj', `/CN=${name}`);
  return readFile(join(folder, `${name}.pem`), 'utf8');
}

/** A certificate of that authority. `names`: whom it names besides its common name, `subject`. */
async function certificate(
  folder: string,
  by: string,
  name: string,
  subject: string,
  names: string,
): Promise<void> {
  const request = ['req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`];
  await openssl(folder, ...request, '-subj', `/CN=${subject}`);
  await writeFile(join(folder, `${name}.ext`), `subjectAltName=${names}\n`);
  const signer = ['-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-CAcreateserial'];
  const signed = ['x509', '-req', '-in', `${name}.csr`, ...signer, '-days', '2', '-out', `${name}.pem`];
  await openssl(folder, ...signed, '-extfile', `${name}.ext`);
}

/** The function's own client claims once, and says with what result. */
const CLAIMS = `
  const { readConfig } = await import(process.env.FUNCTIONS + '/config.ts');
  const { connect } = await import(process.env.FUNCTIONS + '/clients.ts');
  const { systemClock } = await import(process.env.SHARED + '/clock.ts');
  const said = [];
  const log = { info() {}, error() {}, warn: (text, fields) => said.push(fields?.error ?? text) };
  const { claims } = await connect(readConfig(process.env, 'dedup'), systemClock(), log);
  const request = { key: 'k', owner: 'o', fingerprint: 'f', messageId: '1', leaseMs: 60000, retentionMs: 90000, mayTakeOver: true };
  const answer = await claims.claim(request).then(({ kind }) => kind, (error) => error.code);
  console.log([answer, ...new Set(said)].join(' | '));
  process.exit(0);
`;

describe('a function with Redis', { skip: skip !== false }, () => {
  let folder: string;
  let ports: Readonly<Record<string, number>>;
  const ends: (() => Promise<void>)[] = [];

  const redis = async (name: string): Promise<number> => {
    const port = await freePort();
    const files = { cert: `${name}.pem`, key: `${name}.key`, 'ca-cert': 'google.pem' };
    const tls = Object.entries(files).flatMap(([what, file]) => [`--tls-${what}-file`, join(folder, file)]);
    const own = [
      '--port',
      '0',
      '--tls-port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--tls-auth-clients',
      'no',
    ];
    const server = spawn('redis-server', [
      ...own,
      ...tls,
      '--requirepass',
      PASSWORD,
      '--save',
      '',
      '--dir',
      folder,
    ]);
    ends.push(async () => {
      const exited = once(server, 'exit');
      if (server.kill('SIGKILL')) await exited;
    });
    for await (const line of createInterface({ input: server.stdout }))
      if (/ready to accept connections/i.test(line)) return port;
    throw new Error('redis-server ended before it was ready');
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redis-tls-'));
    const [google, next] = [await authority(folder, 'google'), await authority(folder, 'next')];
    // As the module joins them while they are rotated.
    await writeFile(join(folder, 'both.pem'), [next, google].join('\n'));
    await certificate(folder, 'google', 'named', 'redis', 'IP:127.0.0.1');
    await certificate(folder, 'google', 'common', '127.0.0.1', 'DNS:redis.example');
    await certificate(folder, 'google', 'other', 'redis', 'DNS:redis.example');
    ports = { named: await redis('named'), common: await redis('common'), other: await redis('other') };
  });
  after(async () => {
    for (const end of ends) await end();
    await rm(folder, { recursive: true, force: true });
  });

  /** With the planned variables, and the secrets in the form that the module gives them. */
  async function claimed(server: string, authorities: string | undefined): Promise<string> {
    const { resources } = await readPlan('redis');
    const planned = resources.find(
      ({ type, values }) => type === 'google_cloudfunctions2_function' && values['name'] === 'orders-once',
    );
    const variables = at(planned?.values, 'service_config', 'environment_variables') as Record<
      string,
      string
    >;
    assert.equal(variables['NODE_EXTRA_CA_CERTS'], '/etc/redis/ca.pem');
    const env = {
      ...variables,
      NODE_EXTRA_CA_CERTS: authorities === undefined ? '' : join(folder, authorities),
      REDIS_URL: `rediss://:${PASSWORD}@127.0.0.1:${ports[server]}`,
      METADATA_SERVER_DETECTION: 'none',
      FUNCTIONS: fileURLToPath(new URL('../../../functions/src', import.meta.url)),
      SHARED: fileURLToPath(new URL('../../../shared/src', import.meta.url)),
    };
    const arguments_ = ['--conditions=source', '--input-type=module', '-e', CLAIMS];
    const { stdout } = await run(process.execPath, arguments_, { env, timeout: 240_000 });
    return stdout.trim();
  }

  // All at once: a refusal takes the time that a claim waits.
  test('connects with the certificate of its authority, and with several while they are rotated; trusts no other server, and says why', async () => {
    const [own, both, common, none, commonOfNone, other] = await Promise.all([
      claimed('named', 'google.pem'),
      claimed('named', 'both.pem'),
      // Its address as the common name alone, which Node itself does not take.
      claimed('common', 'google.pem'),
      claimed('named', undefined),
      claimed('common', undefined),
      claimed('other', 'google.pem'),
    ]);
    assert.deepEqual([own, both, common], ['claimed', 'claimed', 'claimed']);
    for (const untrusted of [none, commonOfNone]) {
      assert.match(untrusted ?? '', /^STORE_UNAVAILABLE \| .*certificate/);
    }
    assert.match(other ?? '', /^STORE_UNAVAILABLE \| .*does not match certificate/);
  });
});

// A suite that is skipped is not counted; a test is.
test('Redis with TLS can be had', { skip }, () => {});
