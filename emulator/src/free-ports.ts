/**
 * Ports that no process uses. All are held at once before any is released, so that no two are the same; another process
 * may still take one in between, which then is a clear error of the server that wanted it.
 */
import { type AddressInfo, createServer, type Server } from 'node:net';

export async function freePorts(count: number): Promise<readonly number[]> {
  const held = await Promise.all(Array.from({ length: count }, listen));
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}
