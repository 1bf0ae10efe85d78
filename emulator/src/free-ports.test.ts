import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { freePort, freePorts } from './free-ports.ts';

test('no port is given twice, whether they are asked for together or one after the other', async () => {
  const ports = [...(await freePorts(100)), ...(await freePorts(100)), await freePort()];
  assert.equal(new Set(ports).size, 201);
});

test('servers can listen on them, and no system hands them out by itself', async (t) => {
  for (const port of await freePorts(3)) {
    assert.ok(port >= 1_024 && port < 32_768, String(port));
    const server = createServer().listen(port, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
  }
});
