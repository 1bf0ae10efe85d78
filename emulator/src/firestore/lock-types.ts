/** The words of the lock table: owners hold shares of what they looked at to their end, requests wait for them. */

export type Owner = {
  /** Smaller is older. */
  readonly age: number;
  readonly documents: Set<string>;
  /**
   * It is tried again, so it met others before: it has what it looks at to itself, and does not meet them a second time.
   */
  readonly isExclusive: boolean;
  /** What it is tried instead of. It may not have ended yet, and is not waited for. */
  readonly predecessor: Owner | undefined;
  /** Its requests that wait. */
  readonly requests: Set<Request>;
  /** Whether it ever got a lock that others may wait for. */
  hasHeld: boolean;
  /** Called before the table ends this owner because it must give way. */
  readonly onAbort: (error: Error) => void;
};

export type Request = {
  /** In order of arrival. */
  readonly number: number;
  readonly owner: Owner;
  /** Whether it wants what it asks for to itself; otherwise it shares it with others that look. */
  readonly isChange: boolean;
  /** The documents whose queues it stands in. */
  documents: readonly string[];
  /** Owners it waits for: those that hold what it wants, and those that only stand before it in a queue. */
  holders: Set<Owner>;
  ahead: Set<Owner>;
  settled: boolean;
};

/** What a request asks for, looked up again each time it is tried. `R` is a query's range, `C` a change. */
export type Attempt<R, C, T> = Readonly<{
  /** Known before anything is looked up: no other owner may hold, or earlier ask for, an overlapping one. */
  range?: R;
  /** The documents to lock, and the range that they were found in. */
  look(): Readonly<{ documents: readonly string[]; range?: R }>;
  /** Asked when the documents are free: what it would change. An error fails the request. */
  plan?(): readonly C[];
  /** Runs at the moment when it has every lock. */
  run(): T;
  /** The owner ends here, and its locks with it. */
  isLast?: boolean;
}>;

export type LockRules<R, C> = Readonly<{
  overlap(a: R, b: R): boolean;
  alters(change: C, range: R): boolean;
}>;

export type Waiting<R, C> = Request & {
  readonly attempt: Attempt<R, C, unknown>;
  /** What it planned when it was last tried. */
  changes: readonly C[];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Drops its timer and its listener. */
  forget: () => void;
};

export const isBlocked = (request: Request): boolean => request.holders.size + request.ahead.size > 0;
