/**
 * What each command of `sagas` does, and what it prints. Nothing is printed before the store has answered.
 */
import { PermanentError } from '../errors.ts';
import type { CallAnswer, Sagas } from '../sagas/sagas.ts';
import type { SagaStepView, SagaView } from '../sagas/view.ts';
import type { SagasCommand } from './sagas-command.ts';
import { columns, type Printed, shown } from './usage.ts';

/** Rejects with `SAGA_INSTANCE_UNKNOWN` where there is no such instance. */
export async function runSagas(sagas: Sagas, command: SagasCommand): Promise<Printed> {
  switch (command.kind) {
    case 'list': {
      const list = await sagas.list(command.options);
      const more = list.nextPageToken === undefined ? [] : [`more: --page ${list.nextPageToken}`];
      return { object: list, lines: [...table(list.sagas), ...more] };
    }
    case 'inspect': {
      const { saga, id } = command;
      const view = await sagas.inspect(saga, id);
      if (view === undefined) throw unknown(saga, id);
      return { object: view, lines: detailLines(view) };
    }
    case 'cancel':
    case 'retry': {
      const { kind, saga, id, call } = command;
      return answered(saga, id, await sagas[kind](saga, id, call === undefined ? {} : { call }));
    }
    case 'settle': {
      const { kind: _kind, saga, id, step, ...options } = command;
      return answered(saga, id, await sagas.settle(saga, id, step, options));
    }
  }
}

const MEANS: Readonly<Record<CallAnswer['answer'], string>> = {
  cancelling: 'it will be compensated, for certain',
  asked: 'the pivot is in doubt, and decides; inspect shows the end',
  tooLate: 'it will be completed, for certain',
  retried: 'every open command was sent again',
  settled: 'the outcome stands, and the saga goes on',
  notParked: 'nothing was done: its own participants decide',
  notOpen: 'nothing was done: the step waits for no such outcome',
  failed: 'a function of the definition threw: the instance is parked with its text',
  ended: 'nothing was done: it had ended before',
  unknown: 'nothing was done: there is no such instance',
};

function answered(saga: string, id: string, { answer, call }: CallAnswer): Printed {
  if (answer === 'unknown') throw unknown(saga, id);
  return { object: { saga, id, answer, call }, lines: [`${answer}: ${MEANS[answer]} (--call ${call})`] };
}

const unknown = (saga: string, id: string): PermanentError =>
  new PermanentError(
    'SAGA_INSTANCE_UNKNOWN',
    `this consumer has no instance ${shown(id)} of ${shown(saga)}; accepted: one that sagas list shows`,
  );

function table(sagas: readonly SagaView[]): readonly string[] {
  if (sagas.length === 0) return ['no sagas'];
  const rows = sagas.map((view) => [
    shown(view.saga),
    shown(view.id),
    String(view.version),
    view.isParked ? `${view.state}, parked` : view.state,
    view.startedAt.toISOString(),
    shown(view.problems[0] ?? view.reason ?? (view.isLate ? 'late' : '')),
  ]);
  return columns([['SAGA', 'ID', 'VERSION', 'STATE', 'STARTED', ''], ...rows]);
}

function detailLines(view: SagaView): readonly string[] {
  const { deadlineAt, wakeAt, reason, problems, history } = view;
  const fields: readonly (readonly [string, string | undefined])[] = [
    ['saga', `${shown(view.saga)}, version ${view.version}`],
    ['id', shown(view.id)],
    ['state', view.isLate ? `${view.state}, late` : view.state],
    ['reason', reason && shown(reason)],
    ['parked', view.isParked ? problems.map(shown).join('; ') : undefined],
    ['started', view.startedAt.toISOString()],
    ['changed', view.changedAt.toISOString()],
    ['deadline', deadlineAt?.toISOString()],
    ['due', wakeAt?.toISOString()],
    ['data', shown(JSON.stringify(view.data) ?? '')],
  ];
  return [
    ...fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(10)}${value}`])),
    '',
    ...columns([['STEP', 'KIND', 'STATUS', 'ATTEMPT', 'SENT', ''], ...view.steps.map(stepRow)]),
    '',
    ...history.map(({ atMs, event, answer }) =>
      [new Date(atMs).toISOString(), shown(event), answer].filter((text) => text !== undefined).join('  '),
    ),
  ];
}

const stepRow = ({ name, kind, status, attempt, sentAt, problem }: SagaStepView): readonly string[] => [
  name,
  kind,
  status,
  String(attempt),
  sentAt?.toISOString() ?? '',
  shown(problem ?? ''),
];
