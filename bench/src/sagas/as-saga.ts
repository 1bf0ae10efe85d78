/** The action as a saga: an orchestrator, and a participant for each step. */
import type { Transaction } from '@google-cloud/firestore';
import { systemClock } from 'pubsub-guarantees';
import { delay, retryLater } from 'pubsub-guarantees/delay';
import {
  defineSaga,
  done,
  orchestrator,
  participant,
  type SagaDefinition,
  undone,
} from 'pubsub-guarantees/sagas';
import { firestoreSagas, firestoreStepRecords } from 'pubsub-guarantees/sagas/firestore';
import { effect, FOUR, type Ground, serve, starter, type Steps, waiting, type Way } from './services.ts';

type Order = Readonly<{ id: string }>;

/** Far above what a step takes, so that no timer comes: one is made for each saga all the same. */
const REPLY_TIMEOUT = '10m';

const step = (topic: string) =>
  ({
    topic,
    do: ({ id }: Order) => ({ id }),
    replyTimeout: REPLY_TIMEOUT,
  }) as const;

type Defined = SagaDefinition & Readonly<{ start: ReturnType<typeof fourSteps>['start'] }>;

/** The four steps of the comparison, of every kind. */
function fourSteps(prefix: string) {
  const [order = '', credit = '', charge = '', ship = ''] = FOUR;
  const at = (name: string) => step(`${prefix}-${name}`);
  return defineSaga<Order>('four', { version: 1, deadline: '1h' })
    .compensable(order, { ...at(order), undo: ({ id }) => ({ id }) })
    .compensable(credit, { ...at(credit), undo: ({ id }) => ({ id }) })
    .pivot(charge, at(charge))
    .retriable(ship, at(ship));
}

/** So many steps in a row, to count what one more of them costs. */
function rowOf(prefix: string, steps: Steps): Defined {
  const [first = '', ...others] = steps;
  let saga = defineSaga<Order>(`row-${steps.length}`, { version: 1 }).retriable(
    first,
    step(`${prefix}-${first}`),
  );
  for (const name of others) saga = saga.retriable(name, step(`${prefix}-${name}`));
  return saga;
}

/** Without `row`: the four steps. Topics begin with `prefix`. */
export async function asSaga(ground: Ground, prefix: string, row?: Steps): Promise<Way> {
  const { firestore, queue } = ground;
  const steps = row ?? FOUR;
  const saga: Defined = row === undefined ? fourSteps(prefix) : rowOf(prefix, row);
  const own = `${prefix}-saga`;
  const topic = `projects/${ground.pubsub.projectId}/topics/${own}`;
  const { ended, untilEnd } = waiting();
  const later = { clock: systemClock(), topic } as const;
  const last = steps.at(-1);
  const closes = await Promise.all([
    serve(ground, own, orchestrator(firestoreSagas(firestore), [saga], { topic }), {
      stages: [retryLater(queue, later), delay(queue, later)],
      heard({ attributes }) {
        const isLast = attributes['sagaStep'] === last && attributes['sagaOutcome'] === 'done';
        if (isLast) ended(attributes['sagaId'] ?? '');
      },
    }),
    ...steps.map((name) =>
      serve(
        ground,
        `${prefix}-${name}`,
        participant<Transaction>(firestoreStepRecords(firestore), {
          replyTo: [topic],
          steps: {
            [name]: {
              async do(_body, { transaction, saga: { id } }) {
                await effect(firestore, transaction, name, id);
                return done();
              },
              undo: async () => undone(),
            },
          },
        }),
      ),
    ),
  ]);
  const start = starter(ground);
  return {
    async run(id) {
      const end = untilEnd(id);
      await start(id, saga.start(id, { id }, { topic }), { id });
      await end;
    },
    close: async () => void (await Promise.all(closes.map((close) => close()))),
  };
}
