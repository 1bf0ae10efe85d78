/**
 * What the tests of this folder share: a server on a free port, real clients of it, raw calls for what the
 * client would not send, and a clock that is stopped until it is moved. Everything is closed by `close()`.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Firestore } from '@google-cloud/firestore';
import { Client, credentials, Metadata, type MethodDefinition, type ServiceError } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../clock.ts';
import {
  firestoreDefinition,
  type FirestoreOptions,
  type RunningFirestore,
  startFirestore,
} from './index.ts';

/** The answers of a raw call: one for a unary method, any number for a stream. */
export type Answer = Readonly<Record<string, unknown>>;

export type TestBed = Readonly<{
  server: RunningFirestore;
  db: Firestore;
  /** Another client, with its own connection. */
  client(projectId?: string, databaseId?: string): Firestore;
  /** Calls a method as it is on the wire. Rejects with the status. `cancel` ends the call from outside. */
  call(method: string, request: object, cancel?: AbortSignal): Promise<readonly Answer[]>;
  /** Raw calls on a connection of their own, which `cut()` breaks as the death of its process would. */
  raw(): Promise<Readonly<{ call: TestBed['call']; cut(): void }>>;
  close(): Promise<void>;
}>;

/** Errors that the server counts as its own fault fail the test through `close`. */
export async function testBed(
  clock: Clock = systemClock(),
  options: Pick<FirestoreOptions, 'faults' | 'indexes' | 'ttl'> = {},
): Promise<TestBed> {
  const faults: string[] = [];
  const server = await startFirestore({
    indexes: { mode: 'off' },
    ...options,
    clock,
    log: (line) => faults.push(line),
  });
  const definition = firestoreDefinition();
  const clients: Firestore[] = [];
  const raw = new Client(server.address, credentials.createInsecure());
  const client = (projectId = 'test-project', databaseId = '(default)'): Firestore => {
    // The client reads the variable when it is made, and with it needs no credentials; there is no metadata
    // server to look for.
    process.env['FIRESTORE_EMULATOR_HOST'] = server.address;
    process.env['METADATA_SERVER_DETECTION'] = 'none';
    const firestore = new Firestore({ projectId, databaseId });
    clients.push(firestore);
    return firestore;
  };
  const callsOn =
    (connection: Client): TestBed['call'] =>
    (name, request, cancel) => {
      const method = definition[name];
      if (method === undefined) throw new Error(`no method ${name}`);
      return rawCall(connection, method, request, cancel);
    };
  return {
    server,
    db: client(),
    client,
    call: callsOn(raw),
    async raw() {
      const line = await cuttable(server.port);
      const own = new Client(`127.0.0.1:${line.port}`, credentials.createInsecure());
      return {
        call: callsOn(own),
        cut() {
          line.cut();
          own.close();
        },
      };
    },
    async close() {
      raw.close();
      await Promise.all(clients.map((each) => each.terminate()));
      await server.close();
      if (faults.length > 0) throw new Error(`the server failed: ${faults.join('\n')}`);
    },
  };
}

/** A relay to the server: grpc-js keeps a closed client's connection for a while, so the test breaks it in between. */
export async function cuttable(port: number): Promise<Readonly<{ port: number; cut(): void; drop(): void }>> {
  const sockets = new Set<Socket>();
  const relay = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    port: (relay.address() as AddressInfo).port,
    /** Breaks what is connected; new connections are taken. */
    drop,
    cut() {
      relay.close();
      drop();
    },
  };
}

function rawCall(
  raw: Client,
  method: MethodDefinition<object, unknown>,
  request: object,
  cancel: AbortSignal | undefined,
): Promise<readonly Answer[]> {
  const { path, requestSerialize, responseDeserialize, responseStream } = method;
  return new Promise((resolve, reject) => {
    if (responseStream) {
      const answers: Answer[] = [];
      const call = raw.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        new Metadata(),
      );
      cancel?.addEventListener('abort', () => call.cancel());
      call.on('data', (answer: Answer) => answers.push(answer));
      call.on('error', (error: ServiceError) => reject(error));
      call.on('end', () => resolve(answers));
      return;
    }
    const call = raw.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      new Metadata(),
      (error, answer) => (error === null ? resolve([answer as Answer]) : reject(error)),
    );
    cancel?.addEventListener('abort', () => call.cancel());
  });
}
