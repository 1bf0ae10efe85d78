/** Calls as they are on the wire: unary ones, streams of answers, and Listen. */
import type { Readable } from 'node:stream';
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import { firestoreDefinition } from '../../firestore/index.ts';

export type Answer = Readonly<Record<string, unknown>>;

export type Listening = Readonly<{
  send(request: object): void;
  answers: readonly Answer[];
  /** Resolves when an answer is as `is` says; rejects when the stream ends or some seconds pass without. */
  until(is: (answer: Answer) => boolean, what: string): Promise<Answer>;
}>;

export type Calls = Readonly<{
  /** All answers of a call: one for a unary method. Rejects with the status. */
  call(method: string, request: object): Promise<readonly Answer[]>;
  /** The first of them. */
  one(method: string, request: object): Promise<Answer>;
  listen(): Listening;
}>;

/** An answer that does not come is a failure of the case: longer than the 30 s of a lock that is not free. */
const DEADLINE_MS = 40_000;
/** In looks, of which a process that gets no time makes none. */
const PATIENCE_MS = 10_000;
const LOOK_MS = 200;
const ANY_SIZE = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

let definition: ReturnType<typeof firestoreDefinition> | undefined;

function methodOf(name: string): MethodDefinition<object, Answer> {
  definition ??= firestoreDefinition();
  const method = definition[name];
  if (method === undefined) throw new Error(`Firestore has no method ${name}`);
  return method as MethodDefinition<object, Answer>;
}

export function connect(address: string, database: string): Calls & Readonly<{ close(): void }> {
  const client = new Client(address, credentials.createInsecure(), ANY_SIZE);
  const open: { cancel(): void }[] = [];
  // As the client library does for an emulator: the call is its owner's.
  const metadata = new Metadata();
  metadata.set('authorization', 'Bearer owner');
  // As it does for every server: a stream is routed before its first request.
  metadata.set('google-cloud-resource-prefix', database);
  const call = (name: string, request: object): Promise<readonly Answer[]> => {
    const { path, requestSerialize, responseDeserialize, requestStream, responseStream } = methodOf(name);
    const options = { deadline: Date.now() + DEADLINE_MS };
    return new Promise((resolve, reject) => {
      if (!responseStream) {
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
          (error, answer) => (error === null ? resolve([answer ?? {}]) : reject(error)),
        );
        return;
      }
      const answers: Answer[] = [];
      const collect = (stream: Readable): void => {
        stream.on('data', (answer: Answer) => answers.push(answer));
        stream.on('error', (error: ServiceError) => reject(error));
        stream.on('end', () => resolve(answers));
      };
      if (requestStream) {
        const stream = client.makeBidiStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          metadata,
          options,
        );
        collect(stream);
        stream.write(request);
        stream.end();
        return;
      }
      collect(
        client.makeServerStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
        ),
      );
    });
  };
  return {
    call,
    async one(name, request) {
      const [first] = await call(name, request);
      if (first === undefined) throw new Error(`${name} answered nothing`);
      return first;
    },
    listen() {
      const { path, requestSerialize, responseDeserialize } = methodOf('Listen');
      const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata, {});
      open.push(stream);
      return listening(stream);
    },
    close() {
      for (const each of open) each.cancel();
      client.close();
    },
  };
}

type Stream = ClientDuplexStream<object, Answer>;

function listening(stream: Stream): Listening {
  const answers: Answer[] = [];
  let ended: Error | undefined;
  let notify = (): void => {};
  let read = 0;
  stream.on('data', (answer: Answer) => {
    answers.push(answer);
    notify();
  });
  stream.on('error', (error: Error) => {
    ended = error;
    notify();
  });
  return {
    send: (request) => void stream.write(request),
    answers,
    async until(is, what) {
      for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
        for (; read < answers.length; read += 1) {
          const answer = answers[read];
          if (answer === undefined || !is(answer)) continue;
          read += 1;
          return answer;
        }
        if (ended !== undefined) throw ended;
        if (waitedMs >= PATIENCE_MS) throw new Error(`${what} did not come within ${PATIENCE_MS / 1_000} s`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK_MS);
          notify = () => {
            // What has come is no wait.
            waitedMs = -LOOK_MS;
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
}
