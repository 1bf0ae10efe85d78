/** The orders of the demo: what each kind of them meets on its way. Pure. */
import type { FoodOrder } from '../food-order.ts';

type Kind = Readonly<{ kind: string; share: number; to: string; dish: string }>;

/** Of sixteen orders; the order in which they come is mixed by `placed`. */
const KINDS: readonly Kind[] = [
  { kind: 'ordinary', share: 9, to: 'High Street', dish: 'rice' },
  { kind: 'no courier goes there', share: 3, to: 'far side', dish: 'rice' },
  { kind: 'the kitchen has none', share: 2, to: 'Mill Lane', dish: 'soup' },
  { kind: 'the kitchen does not answer', share: 2, to: 'Mill Lane', dish: 'stew' },
];

const SIXTEEN = KINDS.flatMap((kind) => Array.from({ length: kind.share }, () => kind));
/** Without a divisor in common with sixteen: each round has all of them, neighbours differ. */
const STRIDE = 7;

export type Placed = Readonly<{ kind: string; order: FoodOrder }>;

export const placed = (count: number): readonly Placed[] =>
  Array.from({ length: count }, (_, index) => {
    const chosen = SIXTEEN[(index * STRIDE) % SIXTEEN.length];
    if (chosen === undefined) throw new Error('there is no kind of order');
    const { kind, to, dish } = chosen;
    return { kind, order: { id: `order-${index + 1}`, total: 990 + index, to, dish } };
  });
