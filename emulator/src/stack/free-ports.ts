/**
 * Ports that nobody uses, for stacks that need not be at a known place. All are held at once before any is let go,
 * so that no two are the same; another process may still take one in between, which then is a clear error.
 */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { type PortName, type Ports, portsFrom } from './topology.ts';

export async function freePorts(): Promise<Ports> {
  const names = Object.keys(portsFrom(0)) as PortName[];
  const held = await Promise.all(names.map(listen));
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return Object.fromEntries(names.map((name, index) => [name, ports[index]])) as Ports;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}
