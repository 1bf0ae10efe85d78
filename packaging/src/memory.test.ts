/** A limit on the bytes in flight, in the packed processes: what does not fit is refused at once, and comes again. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEPLOYABLES } from './deployables.ts';
import { gate } from './gate.ts';
import { inFlight } from './in-flight.ts';
import { push, type Servers, startServers } from './local-servers.ts';
import { deployedFiles, writePackage } from './package.ts';
import { started } from './started.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
/** Three of the bodies below, of 1.6 MB each, and not four. */
const LIMIT = 5_500_000;

let servers: Servers;
let out: string;

before(async () => {
  servers = await startServers();
  await mkdir(join(ROOT, 'packaging/dist'), { recursive: true });
  out = await mkdtemp(join(ROOT, 'packaging/dist/memory-'));
  for (const deployable of DEPLOYABLES) {
    await writePackage(await deployedFiles(ROOT, deployable), deployable.name, out);
  }
});
after(async () => {
  await rm(out, { recursive: true, force: true });
  await servers.close();
});

/** The status for a body that says no length and never ends. */
function endless(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false });
    sent.once('error', reject);
    sent.once('response', (response) => {
      resolve(response.statusCode ?? 0);
      sent.destroy();
    });
    sent.write(Buffer.alloc(1_500_000, ' '));
  });
}

const QUEUE = { 'X-AppEngine-QueueName': 'delay-queue' };
const CASES = {
  dedup: { path: '/', headers: { 'content-type': 'application/json' } },
  republisher: { path: '/republish', headers: QUEUE },
};

for (const [name, { path, headers }] of Object.entries(CASES)) {
  test(`${name} refuses what does not fit its memory before it has read it, and takes it later`, async (t) => {
    const held = await gate(servers.env['PUBSUB_EMULATOR_HOST'] ?? '');
    t.after(held.close);
    const running = await started({
      folder: join(out, name === 'republisher' ? 'republisher' : 'functions'),
      env: {
        ...servers.env,
        CHECK_WINDOWS: 'off',
        PUBSUB_EMULATOR_HOST: held.address,
        MAX_BYTES_IN_FLIGHT: String(LIMIT),
      },
      ...(name !== 'republisher' && { target: name }),
    });
    t.after(running.close);
    const url = `${running.url}${path}`;
    const body = (id: string): string => push(id.padEnd(700_000, '.'), { dedupId: id });
    const taken = await Promise.all(['1', '2', '3'].map(async (id) => inFlight(url, body(id), headers)));
    assert.equal((await running.post(path, body('4'), headers)).status, 429);
    assert.equal(await endless(url, headers), 429);
    held.open();
    const statuses = await Promise.all(taken.map(async ({ answer }) => (await answer).status));
    assert.ok(
      statuses.every((status) => status === 200 || status === 204),
      String(statuses),
    );
    const later = await running.post(path, body('4'), headers);
    assert.ok(later.status === 200 || later.status === 204, later.text);
  });
}
