import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from 'pubsub-guarantees';
import { virtualClock } from 'pubsub-guarantees/testing';
import { supervise } from './supervisor.ts';
import { atCalls, type Fault } from './faults.ts';
import { type Plan, startProcess } from './process.ts';
import { through } from './through.ts';

const lost = (request: string, how: string): Error => new Error(`${request}: ${how}`);

function started(plan: Partial<Plan> = {}) {
  const clock = virtualClock();
  const process = startProcess(clock, { lost, ...plan });
  const applied: string[] = [];
  const heard: string[] = [];
  /** Applied after `milliseconds`, and what the process gets as its answer. */
  const ask = (name: string, milliseconds = 0): Promise<void> =>
    process
      .call(name, async () => {
        if (milliseconds > 0) await sleep(clock, milliseconds);
        applied.push(name);
        return `${name} is answer ${applied.length}`;
      })
      .then(
        (answer) => void heard.push(answer),
        (error: Error) => void heard.push(error.message),
      );
  return { clock, process, applied, heard, ask };
}

const withFault = (fault: Fault) => started({ faultOf: atCalls({ 'write 1': fault }) });

const faults: readonly (readonly [Fault, applied: number, heard: readonly string[], later: number])[] = [
  [{ kind: 'none' }, 1, ['write is answer 1'], 1],
  [{ kind: 'none', beforeMs: 50 }, 0, [], 1],
  [{ kind: 'none', afterMs: 50 }, 1, [], 1],
  [{ kind: 'refused' }, 0, ['write: the request was lost'], 0],
  [{ kind: 'reply lost' }, 1, ['write: the reply was lost'], 1],
  [{ kind: 'delayed', byMs: 50 }, 0, ['write: the request is on its way'], 1],
  [{ kind: 'repeated' }, 2, ['write is answer 2'], 2],
  [{ kind: 'late copy', byMs: 50 }, 1, ['write is answer 1'], 2],
  [{ kind: 'crash', when: 'before' }, 0, [], 0],
  [{ kind: 'crash', when: 'after' }, 1, [], 1],
];

for (const [fault, atOnce, heard, later] of faults) {
  test(`a request is applied and answered as its fault says: ${JSON.stringify(fault)}`, async () => {
    const { clock, process, applied, heard: said, ask } = withFault(fault);
    void ask('write');
    await clock.advance(10);
    assert.deepEqual([applied.length, said], [atOnce, heard]);
    await clock.advance(100);
    assert.deepEqual([applied.length, process.alive()], [later, fault.kind !== 'crash']);
  });
}

test('a process that died gets no answer to what it had sent, which is applied, and sends nothing more', async () => {
  const { clock, process, applied, heard, ask } = started();
  void ask('first', 10);
  process.crash();
  void ask('second');
  process.clock.after(5, () => heard.push('timer'));
  await clock.advance(1_000);
  assert.deepEqual([applied, heard], [['first'], []]);
  process.pause(1);
  await clock.advance(1_000);
  assert.deepEqual(heard, [], 'a pause that ends wakes no dead process');
});

test('a process that died gets no error either', async () => {
  const { clock, process, heard, ask } = started({ faultOf: () => ({ kind: 'reply lost' }) });
  void ask('write', 10);
  process.crash();
  await clock.advance(1_000);
  assert.deepEqual(heard, []);
});

test('a process that goes on after a pause gets replies and errors before its timers fire', async () => {
  const { clock, process, heard, ask } = started({
    faultOf: atCalls<Fault>({ 'bad 1': { kind: 'reply lost' } }),
  });
  void ask('good', 10);
  void ask('bad', 20);
  process.clock.after(5, () => heard.push('timer'));
  process.pause(100);
  await clock.advance(99);
  assert.deepEqual(heard, []);
  await clock.advance(1);
  assert.deepEqual(heard, ['good is answer 1', 'bad: the reply was lost', 'timer']);
});

test('a pause replaces the one before, and a cancelled timer stays silent', async () => {
  const { clock, process, heard } = started();
  process.clock.after(5, () => heard.push('timer'));
  const cancel = process.clock.after(6, () => heard.push('cancelled'));
  process.pause(10);
  await clock.advance(9);
  cancel();
  process.pause(50);
  await clock.advance(49);
  assert.deepEqual(heard, []);
  await clock.advance(1);
  assert.deepEqual(heard, ['timer']);
});

test('a process dies where the plan says, before a request or when it is applied, and reports it once', async () => {
  for (const [place, requests] of [
    ['before write', []],
    ['after write', ['write']],
  ] as const) {
    let deaths = 0;
    const { clock, process, applied, heard, ask } = started({
      dies: (request, when) => `${when} ${request}` === place,
      died: () => void (deaths += 1),
    });
    void ask('write');
    void ask('write');
    await clock.advance(1);
    process.crash();
    assert.deepEqual(
      [applied, heard, process.alive(), deaths],
      [requests.slice(0, 1).concat(requests.slice(0, 1)), [], false, 1],
    );
  }
});

test('at a place that is no request a process goes on, dies or waits', async () => {
  const { clock, process } = started({ dies: (request) => request === 'abyss' });
  const heard: string[] = [];
  assert.equal(process.pass('bridge', 'before'), true);
  process.pause(10);
  void process.awake().then(() => heard.push('awake'));
  await clock.advance(9);
  assert.equal(heard.length, 0);
  await clock.advance(1);
  assert.equal(heard.join(), 'awake');
  assert.equal(process.pass('abyss', 'before'), false);
  void process.awake().then(() => heard.push('risen'));
  await clock.advance(10);
  assert.equal(heard.join(), 'awake');
});

test('a port’s methods are requests by name, and others are left alone', async () => {
  const asked: string[] = [];
  const { process } = started({ faultOf: (request) => void asked.push(request) as undefined });
  const port = {
    read: async (key: string) => `${key}!`,
    write: async (_key: string, how: 'create' | 'update') => how,
    nameOf: (key: string) => key,
  };
  const seen = through(process.call, port, { read: 'read', write: (_key, how) => how });
  assert.deepEqual(
    [await seen.read('k'), await seen.write('k', 'update'), seen.nameOf('k'), asked],
    ['k!', 'update', 'k', ['read', 'update']],
  );
});

test('the slot of a process that died gets another process, at once or later, and has the dead one until then', async () => {
  const clock = virtualClock();
  const start = (_slot: number, died: () => void) => startProcess(clock, { lost, died });
  const quick = supervise(2, start);
  quick.at(3).crash();
  assert.deepEqual([quick.at(0).alive(), quick.at(1).alive()], [true, true]);
  const slow = supervise(1, start, (again) => void clock.after(100, again));
  const [first, second] = [slow.at(0), (await clock.advance(1), slow.at(0))];
  first.crash();
  assert.equal(first, second);
  assert.equal(slow.at(0).alive(), false);
  await clock.advance(100);
  assert.equal(slow.at(0).alive(), true);
});
