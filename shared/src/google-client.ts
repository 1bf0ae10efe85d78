/**
 * Google's clients without credentials: the call fails, and nothing else.
 *
 * A generated client looks for credentials at its first call and keeps what comes of it. Where that fails, the call
 * rejects, and so does a second promise that each method makes of the same failure and leaves behind
 * (`this.initialize().catch((err) => { throw err; })`): Node ends a process for it, with whatever else it is doing.
 * And the failure is kept: the client would never look again. Here the second promise is observed, and a failure is
 * forgotten, so that the next call looks anew.
 */

type Startable = { initialize(): Promise<unknown> };

/** https://grpc.io/docs/guides/status-codes/ */
const UNAUTHENTICATED = 16;

const guarded = new WeakSet<object>();

/** The client itself, changed as said above. Calling it twice changes nothing. */
export function guardedStart<Client extends object>(client: Client): Client {
  if (guarded.has(client) || !isStartable(client)) return client;
  guarded.add(client);
  const initialize = client.initialize.bind(client);
  return Object.assign(client, { initialize: () => observed(client, initialize()) });
}

function observed(client: Startable, stub: Promise<unknown>): Promise<unknown> {
  const shown = stub.catch((error: unknown) => {
    for (const [name, value] of Object.entries<unknown>(client)) {
      if (value === stub) Reflect.set(client, name, undefined);
    }
    // Without a code Firestore's client tries four times more, for eight seconds, and the text is lost in a time-out.
    if (error instanceof Error && !('code' in error)) Object.assign(error, { code: UNAUTHENTICATED });
    throw error;
  });
  const rethrown = (onFailure: (error: unknown) => unknown): Promise<unknown> => {
    const next = shown.then(undefined, onFailure);
    next.then(undefined, () => undefined);
    return next;
  };
  return Object.assign(shown, { catch: rethrown });
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const isStartable = (client: object): client is Startable =>
  typeof Reflect.get(client, 'initialize') === 'function';

/**
 * Firestore's client makes generated clients as it needs them, in a pool that it does not show. Where a version of it
 * has another pool, nothing is changed.
 */
export function guardedFirestore<Client extends object>(firestore: Client): Client {
  const pool: unknown = Reflect.get(firestore, '_clientPool');
  if (guarded.has(firestore) || typeof pool !== 'object' || pool === null) return firestore;
  guarded.add(firestore);
  const make: unknown = Reflect.get(pool, 'clientFactory');
  if (typeof make === 'function') {
    Reflect.set(pool, 'clientFactory', (...args: unknown[]): unknown => {
      const made: unknown = Reflect.apply(make, pool, args);
      return isObject(made) ? guardedStart(made) : made;
    });
  }
  const made: unknown = Reflect.get(pool, 'activeClients');
  if (made instanceof Map) for (const client of made.keys()) if (isObject(client)) guardedStart(client);
  return firestore;
}

/** The client for Pub/Sub makes one generated client for each of its services, when it is first asked for. */
export function guardedPubsub<Client extends object>(pubsub: Client): Client {
  const get: unknown = Reflect.get(pubsub, 'getClientAsync_');
  if (guarded.has(pubsub) || typeof get !== 'function') return pubsub;
  guarded.add(pubsub);
  Reflect.set(pubsub, 'getClientAsync_', async (...args: unknown[]): Promise<unknown> => {
    const made: unknown = await Reflect.apply(get, pubsub, args);
    return isObject(made) ? guardedStart(made) : made;
  });
  return pubsub;
}
