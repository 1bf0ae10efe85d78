/** One broken promise, in words for people. */
export type Violation = Readonly<{
  kind: 'duplicate' | 'early' | 'out of order' | 'lost' | 'corrupted' | 'unexpected' | 'not published';
  text: string;
}>;
