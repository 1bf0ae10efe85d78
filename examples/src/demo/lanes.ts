/**
 * The four lanes of the local stack, and what each of them promises. The checker judges a lane by this table alone.
 */

type Promises = Readonly<{ once: boolean; later: boolean; inOrder: boolean }>;

export type Lane = Promises &
  Readonly<{
    /** Topic that publishers write to. */
    source: string;
    /** Topic that the function forwards to. */
    target: string;
    /** Pull subscription on the target topic. */
    subscription: string;
    /** What the lane is for, as shown in the table. */
    guarantee: string;
  }>;

const lane = (name: string, guarantee: string, promises: Promises): Lane => ({
  source: `${name}-in`,
  target: `${name}-out`,
  subscription: `${name}-out-sub`,
  guarantee,
  ...promises,
});

export const LANES: readonly Lane[] = [
  lane('dedup', 'once', { once: true, later: false, inOrder: false }),
  lane('delay', 'later', { once: false, later: true, inOrder: false }),
  lane('fifo', 'in order', { once: false, later: false, inOrder: true }),
  lane('pipeline', 'all three', { once: true, later: true, inOrder: true }),
];

export const DEAD_LETTERS = { topic: 'dead-letters', subscription: 'dead-letters-sub' } as const;
