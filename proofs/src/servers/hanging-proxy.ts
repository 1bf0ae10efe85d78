/**
 * A network between a client and a server on this machine, which can drop the server's answers.
 */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';

export type HangingProxy = Readonly<{
  port: number;
  /** From now on requests arrive and answers do not, on the connections that there are; new ones are as they should be. */
  hang(): void;
  close(): Promise<void>;
}>;

export async function startHangingProxy(port: number): Promise<HangingProxy> {
  const pairs = new Set<Readonly<{ client: Socket; server: Socket }>>();
  const proxy = createServer((client) => {
    const server = connect(port, '127.0.0.1');
    const pair = { client, server };
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
    client.pipe(server);
    server.pipe(client);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    hang() {
      for (const { client, server } of pairs) {
        server.unpipe(client);
        server.resume();
      }
    },
    async close() {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      proxy.close();
      await once(proxy, 'close');
    },
  };
}
