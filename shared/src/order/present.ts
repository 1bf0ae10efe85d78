/** Which numbers this process has deliveries of that are not answered yet. Bookkeeping in memory. */
export type Present = Readonly<{
  /** It is there until the result is called; copies count. */
  came(id: string, number: number): () => void;
  has(id: string, number: number): boolean;
}>;

export function presentNumbers(): Present {
  const counts = new Map<string, number>();
  const nameOf = (id: string, number: number): string => `${number} ${id}`;
  return {
    came(id, number) {
      const name = nameOf(id, number);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return () => {
        const others = (counts.get(name) ?? 1) - 1;
        if (others > 0) counts.set(name, others);
        else counts.delete(name);
      };
    },
    has: (id, number) => counts.has(nameOf(id, number)),
  };
}
