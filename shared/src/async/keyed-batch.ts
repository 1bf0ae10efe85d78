/**
 * Work of one key in one process, one run at a time: what is asked for while a run lasts waits, and goes together into
 * the next. A crash loses what waits, whose callers then have no answer.
 */

/** Answers every item for which `answerOf` gives something, of the run and of what waits behind it, before the run ends. */
type AnswerEarly<Item, Answer> = (answerOf: (item: Item) => Answer | undefined) => void;

export type KeyedWork<Item, Answer> = Readonly<{
  /**
   * Does the work of `items`, in the order in which they were asked for. Answers each of them; an answer may be a
   * promise, and then the next run begins before it settles. A rejection is the answer to every item of the run.
   */
  run(
    key: string,
    items: readonly Item[],
    answerEarly: AnswerEarly<Item, Answer>,
  ): Promise<readonly (Answer | Promise<Answer>)[]>;
  /** How many of the first items fit in one run, at least one (default: all of them). */
  fitting?(items: readonly Item[]): number;
}>;

type Waiter<Item, Answer> = Readonly<{
  item: Item;
  resolve(answer: Answer | Promise<Answer>): void;
  reject(error: unknown): void;
}>;

/** Resolves with the item's answer. Rejects as its run does. */
export function keyedBatch<Item, Answer>({
  run,
  fitting = (items) => items.length,
}: KeyedWork<Item, Answer>): (key: string, item: Item) => Promise<Answer> {
  const waiting = new Map<string, Waiter<Item, Answer>[]>();

  const serve = async (key: string, queue: Waiter<Item, Answer>[]): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.splice(0, fitting(queue.map(({ item }) => item)));
      const answerEarly: AnswerEarly<Item, Answer> = (answerOf) => {
        const isLeft = ({ item, resolve }: Waiter<Item, Answer>): boolean => {
          const answer = answerOf(item);
          if (answer === undefined) return true;
          resolve(answer);
          return false;
        };
        for (const waiter of batch) isLeft(waiter);
        queue.splice(0, queue.length, ...queue.filter(isLeft));
      };
      try {
        const items = batch.map(({ item }) => item);
        const answers = await run(key, items, answerEarly);
        if (answers.length !== items.length)
          throw new Error(`a run of ${items.length} items gave ${answers.length} answers`);
        for (const [index, answer] of answers.entries()) batch[index]?.resolve(answer);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    waiting.delete(key);
  };

  return (key, item) =>
    new Promise((resolve, reject) => {
      const waiter = { item, resolve, reject };
      const queue = waiting.get(key);
      if (queue !== undefined) return void queue.push(waiter);
      const fresh = [waiter];
      waiting.set(key, fresh);
      void serve(key, fresh);
    });
}
