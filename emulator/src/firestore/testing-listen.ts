/** A Listen stream as it is on the wire, for tests: what the client would not send, and all that is answered. */
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { firestoreDefinition } from './index.ts';
import type { Answer } from './testing.ts';

export type RawListen = Readonly<{
  send(request: object): void;
  /** All that was answered since this was last called, when the next snapshot of the stream is complete. */
  snapshot(): Promise<readonly Answer[]>;
  /** Until this was answered, in the words of `brief`. */
  until(text: string): Promise<void>;
  /** All answers so far. */
  answers: readonly Answer[];
  /** Resolves with the error, or undefined for a proper end. */
  ended: Promise<ServiceError | undefined>;
  pause(): void;
  resume(): void;
  end(): void;
  close(): void;
}>;

export function rawListen(address: string, database: string): RawListen {
  const method = firestoreDefinition()['Listen'];
  if (method === undefined) throw new Error('no method Listen');
  const client = new Client(address, credentials.createInsecure());
  const call = client.makeBidiStreamRequest<object, Answer>(
    method.path,
    method.requestSerialize,
    method.responseDeserialize as (bytes: Buffer) => Answer,
  );
  const answers: Answer[] = [];
  let read = 0;
  let answered = (): void => undefined;
  call.on('data', (answer: Answer) => {
    answers.push(answer);
    answered();
  });
  const more = (): Promise<void> =>
    new Promise((resolve) => {
      answered = resolve;
    });
  const ended = new Promise<ServiceError | undefined>((resolve) => {
    call.on('error', (error: ServiceError) => resolve(error));
    call.on('end', () => resolve(undefined));
  });
  return {
    send: (request) => void call.write({ database, ...request }),
    answers,
    async snapshot() {
      for (;;) {
        const end = answers.findIndex((answer, i) => i >= read && isSnapshot(answer));
        if (end !== -1) {
          const found = answers.slice(read, end + 1);
          read = end + 1;
          return found;
        }
        await more();
      }
    },
    async until(text) {
      while (!answers.some((answer) => brief(answer) === text)) await more();
    },
    ended,
    pause: () => void call.pause(),
    resume: () => void call.resume(),
    end: () => call.end(),
    close() {
      call.cancel();
      client.close();
    },
  };
}

function isSnapshot(answer: Answer): boolean {
  const change = answer['targetChange'] as Answer | undefined;
  return change?.['targetChangeType'] === 'NO_CHANGE' && (change['targetIds'] as unknown[]).length === 0;
}

/** An answer in a few words: `CURRENT 1`, `change 1 rows/a`, `delete 1 rows/a`, `remove 1 rows/a`. */
export function brief(answer: Answer): string {
  const part = (key: string): Answer | undefined => answer[key] as Answer | undefined;
  const path = (name: unknown): string => String(name).split('/documents/')[1] ?? '';
  const targetChange = part('targetChange');
  if (targetChange) {
    return [targetChange['targetChangeType'], ...(targetChange['targetIds'] as number[])].join(' ');
  }
  const change = part('documentChange');
  if (change) {
    return `change ${String(change['targetIds'])} ${path((change['document'] as Answer)['name'])}`;
  }
  const gone = part('documentDelete') ?? part('documentRemove');
  const kind = part('documentDelete') ? 'delete' : 'remove';
  return `${kind} ${String(gone?.['removedTargetIds'])} ${path(gone?.['document'])}`;
}
