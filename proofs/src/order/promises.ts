/**
 * What must hold after a simulation, whatever went wrong in it. Throws an AssertionError for what does not.
 */
import assert from 'node:assert/strict';
import { codeOf } from '../../../shared/src/errors.ts';
import { isSkipped, type StreamState } from '../../../shared/src/order/stream-state.ts';
import { MAX_ATTEMPTS, refOf, type Schedule } from './schedule.ts';
import type { Simulated } from './simulation.ts';
import { keysOf } from './traffic.ts';

export function checkPromises(plan: Schedule, run: Simulated): void {
  assert.deepEqual(run.recording.violations, []);
  for (const [content, starts] of run.recording.kills) {
    assert.ok(starts <= MAX_ATTEMPTS, `${content}, which kills its process, was started ${starts} times`);
  }
  const contents = new Map<string, string>();
  for (const key of keysOf(plan)) checkKey(plan, run, key, contents);
  checkMessages(run, contents);
}

function checkKey(plan: Schedule, run: Simulated, key: string, contents: Map<string, string>): void {
  const { recording, store, deadLettered, traffic } = run;
  const state = store.stateOf(refOf(key));
  const firsts: number[] = [];
  for (const effect of recording.effects.filter((one) => one.key === key)) {
    const name = `${key}#${effect.number}`;
    // What ran under a lost lease and was abandoned meanwhile is known to both sides: no promise covers its order.
    const wasSkipped = state !== undefined && isSkipped(state, effect.number);
    if (!contents.has(name) && !wasSkipped) firsts.push(effect.number);
    assert.equal(contents.get(name) ?? effect.content, effect.content, `${name} ran with two contents`);
    contents.set(name, effect.content);
  }
  const last = state?.last ?? 0;
  const isDone = (number: number): boolean => state === undefined || !isSkipped(state, number);
  const expected = Array.from({ length: last }, (_, index) => index + 1).filter(isDone);
  // The number behind `last` may have run, where its commit was never confirmed and it then failed or is blocked.
  assert.deepEqual(
    firsts.filter((number) => number <= last),
    expected,
    `first runs of ${key}`,
  );
  for (let number = 1; number <= last; number += 1) {
    if (isDone(number)) continue;
    const isDeadLettered = [...deadLettered].some(
      (content) => content.startsWith(`${key}#${number}`) && isOf(content, key, number),
    );
    // Or it became poison before it could be stored, and is dead-lettered with its next delivery.
    const isLate = traffic.sent.some(
      (one) => one.key === key && one.number === number && cameLate(run, one.id),
    );
    const isKnown = isDeadLettered || isLate || plan.onGap === 'skip';
    assert.ok(isKnown, `${key}#${number} was dropped without a dead letter`);
  }
  checkEnd(plan, run, key, state);
  assert.ok(last <= plan.numbers && traffic.sent.length >= 0);
}

const isOf = (content: string, key: string, number: number): boolean => {
  const [itsKey, itsNumber] = content.split('#');
  return itsKey === key && itsNumber === String(number);
};

const cameLate = ({ settled }: Simulated, id: string): boolean => {
  const outcome = settled.get(id);
  return outcome?.kind === 'deadLetter' && codeOf(outcome.error) === 'LATE_ARRIVAL';
};

function checkEnd(plan: Schedule, run: Simulated, key: string, state: StreamState | undefined): void {
  if (state === undefined) return;
  const held = run.store.heldNumbers(refOf(key));
  assert.deepEqual([state.lease, state.readyAt], [null, null], `${key} is not at rest`);
  assert.deepEqual(
    held.filter((number) => number <= state.last),
    [],
    `${key} keeps what is done`,
  );
  if (state.blocked !== null) {
    assert.ok(plan.onPoison === 'block' && !plan.operated, `${key} is blocked`);
    const isFatal = [...run.traffic.fatal.keys()].some((content) => isOf(content, key, state.last + 1));
    // Processes that died count as attempts: on top of its failures an innocent next message may then be blocked too.
    assert.ok(
      isFatal || run.faults > 0 || run.recording.kills.size > 0,
      `${key} is blocked at a message that does not fail`,
    );
    assert.ok(held.includes(state.last + 1), `${key} is blocked without its message`);
    return;
  }
  if (held.length === 0) return assert.equal(state.waitingSince, null, `${key} waits for nothing`);
  const isDropped = run.traffic.dropped.some((one) => one.key === key && one.number === state.last + 1);
  assert.ok(isDropped && plan.onGap === 'wait' && !plan.repairs, `${key} is not at its end`);
  assert.ok(
    state.waitingSince !== null && state.gapAt === state.last,
    `${key} has a gap that is not recorded`,
  );
  assert.ok(!held.includes(state.last + 1), `${key} waits although its next message is here`);
}

/** Each message ran, is a dead letter, or waits visibly in the store. */
function checkMessages(
  { traffic, settled, deadLettered, store, faults, recording }: Simulated,
  contents: ReadonlyMap<string, string>,
): void {
  for (const message of traffic.sent) {
    const { id, key, number, content, epoch } = message;
    const outcome = settled.get(id);
    assert.ok(outcome !== undefined, `${id} (${content}) was never settled`);
    const state = store.stateOf(refOf(key));
    const ran = contents.get(`${key}#${number}`) === content;
    if (outcome.kind === 'ack') {
      const waits = store.heldNumbers(refOf(key)).includes(number);
      assert.ok(ran || deadLettered.has(content) || waits, `${content} was acknowledged and never ran`);
      assert.ok(
        waits || number <= (state?.last ?? 0),
        `${content} was acknowledged and nothing shows it as done`,
      );
      continue;
    }
    assert.ok(outcome.kind === 'deadLetter');
    const code = codeOf(outcome.error);
    if (code === 'LATE_ARRIVAL')
      assert.ok(state !== undefined && isSkipped(state, number), `${content} is not late`);
    else if (code === 'EPOCH_MISMATCH')
      assert.notEqual(state?.epoch, epoch, `${content} has the right epoch`);
    else if (code === 'SEQUENCE_CONFLICT') assert.ok(!ran, `${content} ran and was dead-lettered`);
    else {
      assert.ok(deadLettered.has(content), `${content} was dropped without a dead letter`);
      // As above: an innocent next message may be dead-lettered too, where processes died in it.
      assert.ok(
        code === 'FATAL' || code === 'ATTEMPTS_EXHAUSTED' || faults > 0 || recording.kills.size > 0,
        `${content} was dead-lettered for ${code}`,
      );
    }
  }
}
