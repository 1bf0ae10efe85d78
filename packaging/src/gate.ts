/** A server of TCP in front of another, for tests: it holds connections back until the test opens it. The test that starts it closes it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Gate = Readonly<{
  /** `host:port` */
  address: string;
  /** Lets through what has arrived and what arrives from now on. */
  open(): void;
  close(): Promise<void>;
}>;

/** In front of `behind`, a `host:port`. Closed at first. */
export async function gate(behind: string): Promise<Gate> {
  const [host = '', port = ''] = behind.split(':');
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let isOpen = false;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    // A process that is killed resets its connections.
    socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket));
    return socket;
  };
  const server = createServer({ pauseOnConnect: true }, (incoming) => {
    keep(incoming);
    const join = (): void => {
      const outgoing = keep(connect(Number(port), host));
      incoming.pipe(outgoing).pipe(incoming);
    };
    if (isOpen) join();
    else waiting.add(join);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    open() {
      isOpen = true;
      for (const join of waiting) join();
      waiting.clear();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
