/**
 * A plan of faults: a seed and rules. All of it is plain data, so that the same plan can be sent again.
 */

export const SERVICES = ['pubsub', 'firestore', 'tasks'] as const;
export type Service = (typeof SERVICES)[number];

/** Times on the wire (`delay` of an RPC) are real time, because a client's own deadline is; all others are the clock's. */
export type Action =
  /** RPC: `code` is answered and nothing is done. Push, dispatch: not sent; answered `status`, or the connection broke. */
  | Readonly<{ type: 'fail'; code?: string; message?: string; status?: number }>
  /** The work is done and its answer is lost: an RPC ends with `code`, for a push or a dispatch the connection broke. */
  | Readonly<{ type: 'lose-reply'; code?: string }>
  | Readonly<{ type: 'delay'; ms: number }>
  /** Destroys the connection. A call: before or after the work; a stream: when so many responses have been sent. */
  | Readonly<{ type: 'cut'; when?: 'before' | 'after'; afterMessages?: number }>
  | Readonly<{ type: 'drop-ack' }>
  | Readonly<{ type: 'duplicate' }>
  /** Never sent, and not tried again. */
  | Readonly<{ type: 'lose' }>
  /** Held back until `window` later messages were handed over, at most `atMostMs` of the clock. */
  | Readonly<{ type: 'reorder'; window: number; atMostMs?: number }>
  | Readonly<{ type: 'restart'; state: RestartState; downMs?: number }>;

export type ActionType = Action['type'];
type RestartState = 'kept' | 'lost';

/** What a restart is: `downMs` of the clock without a listening port, then with the state that it had or without any. */
export type RestartSpec = Readonly<{ state: RestartState; downMs: number }>;

export type Rule = Readonly<{
  service: Service;
  /** An RPC by its name, `deliver`, `push`, `dispatch`, `trigger`, or `*`: every RPC of the service that the action fits. */
  method: string;
  /** What the call is about; each `*` stands for any characters. */
  resource: string;
  /** Numbers of the calls, counted from 1 for each method and resource. Without `nth` and `share`: every call. */
  nth?: readonly number[];
  /** Of the calls, above 0 to 1. */
  share?: number;
  /** At most so often for each method and resource. */
  times?: number;
  action: Action;
}>;

export type Plan = Readonly<{ seed: number; rules: readonly Rule[] }>;

/** Milliseconds: a reordered message waits no longer than this for others, unless its rule says otherwise. */
export const REORDER_AT_MOST_MS = 1_000;
