/**
 * What is asked for in one turn of the event loop goes out together: a burst of deliveries costs a few requests where it
 * would cost hundreds. Nothing is delayed for the sake of a batch: what is asked for goes out at the end of the turn.
 */

export type Asked<Item, Answer> = Readonly<{ item: Item; answer(answer: Answer | Promise<Answer>): void }>;

/** `send` answers everything that was asked for in one turn. What it throws is the answer to all of it. */
export function turnBatch<Item, Answer>(
  atTurnsEnd: (flush: () => void) => void,
  send: (asked: readonly Asked<Item, Answer>[]) => void,
): (item: Item) => Promise<Answer> {
  let turn: Asked<Item, Answer>[] = [];
  const flush = (): void => {
    const ended = turn;
    turn = [];
    try {
      send(ended);
    } catch (error) {
      for (const { answer } of ended) answer(Promise.reject(error));
    }
  };
  return (item) =>
    new Promise((answer) => {
      if (turn.push({ item, answer }) === 1) atTurnsEnd(flush);
    });
}
