/**
 * What a conformance case is: one sentence of the service's documentation, as calls and what they must answer. The same
 * case runs against the embedded server and against Google's emulator, so it knows nothing of either.
 */

export type Case<World> = Readonly<{
  /** The section of the table that it stands in. */
  feature: string;
  /** What the service does, as a sentence. Unique in its suite. */
  title: string;
  /** The document that says so: its address, or the name of a recording of the service. */
  source: string;
  /** Resolves when the server behaves so; rejects, with what it did in the message, when it does not. */
  run(world: World): Promise<void>;
  /**
   * The service does this and the embedded server refuses it: resolves when it is refused, loudly and without a trace.
   * It is asked in place of `run`, which is for Google's emulator, and never counts as documented.
   */
  refusedHere?: ((world: World) => Promise<void>) | undefined;
  /** Why Google's emulator cannot be asked: `waits seven days`. Absent where it can. */
  embeddedOnly?: string;
}>;

export type World = Readonly<{ close(): Promise<void> }>;

export type Suite<Own extends World> = Readonly<{
  service: string;
  cases: readonly Case<Own>[];
  /** A server of its own for each case, on a clock that the world moves. */
  embedded(): Promise<Own>;
  /** The same on Google's emulator at the address, in a project of the case's own. Undefined where there is none. */
  official?: ((address: string, project: string) => Promise<Own>) | undefined;
}>;
