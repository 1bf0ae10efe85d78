/**
 * Transactions whose client is gone. The service frees their locks after its idle limit of 60 s; on a laptop, where
 * processes are killed on purpose, everything that they touched would be blocked for that long. Here they end a
 * second after the connection that used them last: a live client goes on with them on another one before.
 */
import type { Cancel, Clock } from '../clock.ts';

export type Abandoned = Readonly<{
  /** Follows one call: which transaction it uses, begins or ends, and on which connection. */
  during<Answer>(call: SeenCall, run: () => Promise<Answer>): Promise<Answer>;
  disconnected(peer: string): void;
  close(): void;
}>;

export type SeenCall = Readonly<{ peer: string; method: string; request: unknown }>;

const GRACE_MS = 1_000;
const ENDING = /\/(Commit|Rollback)$/;

type Use = Readonly<{ peer: string; database: string; transaction: Uint8Array }>;

/** `rollback` ends a transaction; it may throw for one that is not open any more. */
export function abandoned(
  clock: Clock,
  rollback: (database: string, transaction: Uint8Array) => void,
): Abandoned {
  const uses = new Map<string, Use>();
  const timers = new Set<Cancel>();

  function note({ peer, request }: SeenCall, transaction: Uint8Array | undefined): void {
    const database = databaseIn(request);
    if (transaction === undefined || database === undefined) return;
    uses.set(keyOf(transaction), { peer, database, transaction });
  }

  function end(key: string, { database, transaction }: Use): void {
    uses.delete(key);
    try {
      rollback(database, transaction);
    } catch {
      // It had ended by itself.
    }
  }

  return {
    async during(call, run) {
      const used = transactionIn(call.request);
      note(call, used);
      try {
        const answer = await run();
        note(call, transactionIn(Array.isArray(answer) ? answer[0] : answer));
        return answer;
      } finally {
        if (used !== undefined && ENDING.test(call.method)) uses.delete(keyOf(used));
      }
    },
    disconnected(peer) {
      const left = [...uses].filter(([, use]) => use.peer === peer);
      if (left.length === 0) return;
      const cancel = clock.after(GRACE_MS, () => {
        timers.delete(cancel);
        // Used again since, on another connection: then it is another use.
        for (const [key, use] of left) if (uses.get(key) === use) end(key, use);
      });
      timers.add(cancel);
    },
    close() {
      for (const cancel of timers) cancel();
      timers.clear();
      uses.clear();
    },
  };
}

const keyOf = (transaction: Uint8Array): string => Buffer.from(transaction).toString('base64');

function transactionIn(message: unknown): Uint8Array | undefined {
  if (typeof message !== 'object' || message === null || !('transaction' in message)) return undefined;
  const { transaction } = message;
  return transaction instanceof Uint8Array && transaction.length > 0 ? transaction : undefined;
}

/** Requests name their database, or a resource in it. */
function databaseIn(request: unknown): string | undefined {
  if (typeof request !== 'object' || request === null) return undefined;
  const named = ['database', 'parent', 'name'].map((field) => Reflect.get(request, field) as unknown);
  const resource = named.find((value) => typeof value === 'string');
  return /^projects\/[^/]+\/databases\/[^/]+/.exec(resource ?? '')?.[0];
}
