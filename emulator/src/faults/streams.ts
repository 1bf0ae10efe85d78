/**
 * What faults do to the streams of @grpc/grpc-js: the call that a handler sees keeps its form, and its answers go another
 * way.
 */
import { Metadata, type ServerDuplexStream, type ServerWritableStream } from '@grpc/grpc-js';

type Stream = ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>;
type Written = (error?: Error | null) => void;

/** Ends the call with the error. */
export function failStream(call: Stream, error: Error): void {
  // With headers first a client takes it as an answer; without, as a connection that broke.
  call.sendMetadata(new Metadata());
  call.emit('error', error);
}

/** Nothing of what the handler sends arrives; when it ends the call, whichever way, the error does. */
export function loseEnd(call: Stream, error: Error): void {
  const end = call.end.bind(call) as Stream['end'];
  call.write = () => true;
  call.end = (() => {
    call.end = end;
    failStream(call, error);
    return call;
  }) as Stream['end'];
}

/** Calls `act` once when so many answers have been handed to the connection; later ones do not arrive. */
export function cutAfter(call: Stream, answers: number, act: () => void): void {
  const write = call.write.bind(call) as (answer: unknown, written: Written) => boolean;
  let sent = 0;
  call.write = (answer: unknown) => {
    if (sent >= answers) return true;
    sent += 1;
    const isLast = sent === answers;
    // The socket may have the bytes still in its hands: a turn of the loop lets it give them away.
    return write(answer, () => {
      if (isLast) setImmediate(act);
    });
  };
}

/**
 * Waits for the first request of a stream. `goOn` starts the handler and gives it that request, as if it had just come;
 * until then nothing more is read.
 */
export function onFirstRequest(
  call: ServerDuplexStream<unknown, unknown>,
  decided: (request: unknown, goOn: (start: () => void) => void) => void,
): void {
  const ended = (): void => void call.end();
  call.once('end', ended);
  call.once('data', (request: unknown) => {
    call.off('end', ended);
    call.pause();
    decided(request, (start) => {
      start();
      call.emit('data', request);
      call.resume();
    });
  });
}
