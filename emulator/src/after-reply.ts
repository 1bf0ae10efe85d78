/**
 * Doing something when a client has got the reply to its call. A server knows of a reply only that it was written; an
 * HTTP/2 peer answers a PING in its turn, behind the frames of the reply. So a PING that is written after the reply, and
 * acknowledged, says that the reply is there, however busy the client is.
 */
import type { Server } from '@grpc/grpc-js';
import { onCall } from './grpc-timeout.ts';

/** `peer` as `call.getPeer()` gives it. `act` is called later, once, whatever becomes of the connection. */
export type AfterReply = (peer: string, act: () => void) => void;

type Session = Readonly<{
  destroyed: boolean;
  socket?: Readonly<{ remoteAddress?: string; remotePort?: number }>;
  ping(callback: (error: Error | null) => void): boolean;
  once(event: 'close', listener: () => void): unknown;
}>;

/** What waits for the next PING of a connection: one at a time, because a peer may take many for an attack. */
type Waiting = { session: Session; acts: (() => void)[]; pinging: boolean };

/** Turns of the event loop in which @grpc/grpc-js writes a reply with its trailers. */
const REPLY_TURNS = 3;
/** For a client that does not acknowledge: it is stopped, or about to go. */
const LONGEST_MS = 100;

/** Called when the server's HTTP/2 server exists. Throws as `onCall` does. */
export function afterReplies(server: Server): AfterReply {
  const connections = new Map<string, Waiting>();
  onCall(server, (_, stream) => {
    const { session } = stream as Readonly<{ session?: Session }>;
    const { remoteAddress, remotePort } = session?.socket ?? {};
    const peer = `${remoteAddress}:${remotePort}`;
    if (session === undefined || connections.get(peer)?.session === session) return;
    connections.set(peer, { session, acts: [], pinging: false });
    session.once('close', () => {
      if (connections.get(peer)?.session === session) connections.delete(peer);
    });
  });

  function ping(waiting: Waiting): void {
    waiting.pinging = true;
    afterTurns(REPLY_TURNS, () => {
      const acts = waiting.acts.splice(0);
      const late = setTimeout(() => done(), LONGEST_MS);
      let over = false;
      const done = (): void => {
        if (over) return;
        over = true;
        clearTimeout(late);
        if (waiting.acts.length > 0) ping(waiting);
        else waiting.pinging = false;
        for (const act of acts) act();
      };
      if (waiting.session.destroyed || !waiting.session.ping(done)) done();
    });
  }

  return (peer, act) => {
    const waiting = connections.get(peer);
    if (waiting === undefined) return afterTurns(REPLY_TURNS, act);
    waiting.acts.push(act);
    if (!waiting.pinging) ping(waiting);
  };
}

function afterTurns(turns: number, act: () => void): void {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, act) : act()));
}
