/**
 * The same four steps with inbox and outbox alone, written in two ways: a coordinator that keeps the action's state in its
 * order, sends each step and gets its reply, as a program would that must know where each action stands; and a chain, in
 * which each service sends the next one on. Neither has what a saga has besides: no timeout, no compensation, no record
 * by which a step is done once however often it is asked for.
 */
import { ack } from 'pubsub-guarantees';
import { effect, FOUR, type Ground, serve, starter, type Steps, waiting, type Way } from './services.ts';

const bodyOf = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const read = (data: Uint8Array) =>
  JSON.parse(Buffer.from(data).toString()) as Readonly<{ id: string; step: string }>;

export async function coordinated(ground: Ground, prefix: string, steps: Steps = FOUR): Promise<Way> {
  const { firestore } = ground;
  const topic = `${prefix}-replies`;
  const { ended, untilEnd } = waiting();
  const commandOf = (index: number, id: string) => {
    const step = steps[index] ?? '';
    return { topic: `${prefix}-${step}`, data: bodyOf({ id, step }), attributes: {} };
  };
  const coordinator = serve(
    ground,
    topic,
    async ({ data }, { transaction }) => {
      const { id, step } = read(data);
      const order = firestore.collection('orders').doc(id);
      const next = Number((await transaction.get(order)).get('next'));
      if (steps[next] !== step) return ack('stale');
      transaction.update(order, { next: next + 1 });
      const isLast = next + 1 === steps.length;
      return ack('handled', isLast ? [] : [commandOf(next + 1, id)]);
    },
    {
      heard({ data }) {
        const { id, step } = read(data);
        if (step === steps.at(-1)) ended(id);
      },
    },
  );
  const closes = await Promise.all([
    coordinator,
    ...steps.map((step) =>
      serve(ground, `${prefix}-${step}`, async ({ data }, { transaction }) => {
        const { id } = read(data);
        await effect(firestore, transaction, step, id);
        return ack('handled', [{ topic, data: bodyOf({ id, step }), attributes: {} }]);
      }),
    ),
  ]);
  return running(ground, untilEnd, closes, (id) => commandOf(0, id));
}

export async function chained(ground: Ground, prefix: string, steps: Steps = FOUR): Promise<Way> {
  const { firestore } = ground;
  const { ended, untilEnd } = waiting();
  const messageTo = (step: string, id: string) => ({
    topic: `${prefix}-${step}`,
    data: bodyOf({ id, step }),
    attributes: {},
  });
  const closes = await Promise.all(
    steps.map((step, index) => {
      const next = steps[index + 1];
      return serve(
        ground,
        `${prefix}-${step}`,
        async ({ data }, { transaction }) => {
          const { id } = read(data);
          await effect(firestore, transaction, step, id);
          return ack('handled', next === undefined ? [] : [messageTo(next, id)]);
        },
        { heard: ({ data }) => (next === undefined ? ended(read(data).id) : undefined) },
      );
    }),
  );
  return running(ground, untilEnd, closes, (id) => messageTo(steps[0] ?? '', id));
}

function running(
  ground: Ground,
  untilEnd: (id: string) => Promise<void>,
  closes: readonly (() => Promise<void>)[],
  first: (id: string) => Readonly<{ topic: string; data: Buffer; attributes: Record<string, string> }>,
): Way {
  const start = starter(ground);
  return {
    async run(id) {
      const end = untilEnd(id);
      await start(id, first(id), { id, next: 0 });
      await end;
    },
    close: async () => void (await Promise.all(closes.map((close) => close()))),
  };
}
