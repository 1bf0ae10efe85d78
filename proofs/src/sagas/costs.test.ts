/**
 * What a step costs in Firestore, counted as its requests leave the client: the difference between a saga of six steps and
 * one of two. A start, an end and a timer are no part of it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Firestore } from '@google-cloud/firestore';
import { defineSaga } from '../../../shared/src/sagas/definition.ts';
import { stage } from '../../../shared/src/testing/saga-stage.ts';
import { firestoreGround } from './firestore-ground.ts';

type Counts = { reads: number; writes: number; deletes: number };
type Write = Readonly<{ delete?: unknown }>;
type Request = Readonly<{ writes?: readonly Write[]; documents?: readonly unknown[] }>;
type Send = (method: string, ...rest: unknown[]) => unknown;

/** Of documents. A query is one read at least. */
function counted(firestore: Firestore): Counts {
  const counts: Counts = { reads: 0, writes: 0, deletes: 0 };
  const count = (method: string, given: readonly unknown[]): void => {
    const request = given.find((one): one is Request => typeof one === 'object' && one !== null);
    if (method === 'runQuery') counts.reads += 1;
    if (method === 'batchGetDocuments') counts.reads += request?.documents?.length ?? 0;
    for (const write of request?.writes ?? []) {
      if (write.delete === undefined) counts.writes += 1;
      else counts.deletes += 1;
    }
  };
  const internals = firestore as unknown as { request: Send; requestStream: Send };
  const { request, requestStream } = internals;
  internals.request = (method, ...rest) => {
    count(method, rest);
    return request.call(firestore, method, ...rest);
  };
  internals.requestStream = (method, ...rest) => {
    count(method, rest);
    return requestStream.call(firestore, method, ...rest);
  };
  return counts;
}

function sagaOf(steps: number) {
  const step = (name: string) => ({ topic: name, do: ({ id }: { id: string }) => ({ id }) });
  let saga = defineSaga<{ id: string }>(`of-${steps}`, { version: 1 }).retriable('s0', step('s0'));
  for (let index = 1; index < steps; index += 1) saga = saga.retriable(`s${index}`, step(`s${index}`));
  return saga;
}

test('a step costs at most 2 reads, 8 writes and 2 deletes, beside its own', async (t) => {
  const ground = await firestoreGround();
  t.after(() => ground.close());
  const counts = counted(ground.firestore);
  const costOf = async (steps: number): Promise<Counts> => {
    const saga = sagaOf(steps);
    const play = stage(ground, [saga]);
    const before = { ...counts };
    play.start(saga, `cost-${steps}`);
    await play.flow();
    const cost = {
      reads: counts.reads - before.reads,
      writes: counts.writes - before.writes,
      deletes: counts.deletes - before.deletes,
    };
    assert.equal((await play.instance(saga.name, `cost-${steps}`)).state, 'completed');
    return cost;
  };
  const [two, six] = [await costOf(2), await costOf(6)];
  const OWN = { reads: 1, writes: 1 };
  const step = {
    reads: (six.reads - two.reads) / 4 - OWN.reads,
    writes: (six.writes - two.writes) / 4 - OWN.writes,
    deletes: (six.deletes - two.deletes) / 4,
  };
  t.diagnostic(`a step: ${JSON.stringify(step)}`);
  assert.deepEqual(step, { reads: 2, writes: 8, deletes: 2 });
});
