/**
 * A task that is being dispatched against a writer that replaces or cancels it: every order of their transactions, each
 * cut into its read and its commit.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ledger } from '../../../shared/src/schedules/ledger.ts';
import type { MemoryLedger } from '../../../shared/src/schedules/memory.ts';
import { play, reasonOf } from './play.ts';

const KEY = 'k';
type Actor = 'task' | 'writer';

/** The task: read, commit, publish, read, commit. The writer: read, commit. */
const STEPS = { task: 5, writer: 2 };

function orders(task: number, writer: number): Actor[][] {
  if (task === 0 && writer === 0) return [[]];
  const first = (actor: Actor, rest: Actor[][]) => rest.map((order) => [actor, ...order]);
  return [
    ...(task > 0 ? first('task', orders(task - 1, writer)) : []),
    ...(writer > 0 ? first('writer', orders(task, writer - 1)) : []),
  ];
}

/** A transaction at a gate waits there until the order lets it pass; once the order is used up every gate is open. */
function gates() {
  const waiting = { task: [] as (() => void)[], writer: [] as (() => void)[] };
  let isOpen = true;
  return {
    close: () => void (isOpen = false),
    gate: (actor: Actor): Promise<void> =>
      isOpen ? Promise.resolve() : new Promise((resolve) => void waiting[actor].push(resolve)),
    /** Lets it take one step; nothing where it has come to its end. */
    async pass(actor: Actor): Promise<void> {
      for (let turn = 0; turn < 10 && waiting[actor].length === 0; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      waiting[actor].shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
    open(): void {
      isOpen = true;
      for (const resolve of [...waiting.task.splice(0), ...waiting.writer.splice(0)]) resolve();
    },
  };
}

type Gates = ReturnType<typeof gates>;

/** Its transactions read at one gate and commit at the next, and are run again when another was faster. */
const cut = (memory: MemoryLedger, gate: Gates['gate'], actor: Actor): Ledger => ({
  ...memory,
  change: (id, rule) => {
    return memory.transact(async (tx) => {
      await gate(actor);
      const { entry, nowMs } = await memory.readIn(tx, id);
      const decision = rule(entry, nowMs);
      if (decision.entry !== undefined) memory.writeIn(tx, id, decision.entry);
      await gate(actor);
      return decision;
    });
  },
});

type Setting = ReturnType<typeof setting>;

function setting() {
  const held = gates();
  const stage = play({
    dispatches: false,
    wrapLedger: (memory) => cut(memory, held.gate, 'writer'),
    wrapFiring: (memory) => cut(memory, held.gate, 'task'),
  });
  const publish = stage.target.publish.bind(stage.target);
  Object.assign(stage.target, {
    publish: async (message: Parameters<typeof publish>[0]) => {
      await held.gate('task');
      return publish(message);
    },
  });
  const dispatch = () => stage.dispatch(stage.tasks.created[0]!);
  const program = (cancels: boolean) =>
    stage.memory.transact(async (tx) => {
      await held.gate('writer');
      const slot = await stage.schedules.reserve(tx, KEY);
      const change = cancels ? slot.cancel() : await slot.put({ data: 'new' });
      await held.gate('writer');
      return change.answer;
    });
  const first = () => stage.message({ scheduleKey: KEY, delay: '10' }, 'old');
  const message = (attributes: Record<string, string>) => {
    return stage.handle(stage.message({ scheduleKey: KEY, ...attributes }, 'new')).then(reasonOf);
  };
  return { ...stage, held, dispatch, program, first, message };
}

/** Runs the two in the order given, then to their ends. */
async function race(order: readonly Actor[], write: (by: Setting) => Promise<string>) {
  const by = setting();
  await by.deliver(by.first());
  await by.clock.advance(10_000);
  by.held.close();
  // What is published once a success was answered is published after it.
  const answer = write(by).then((said) => ({ said, before: by.published().length }));
  const run = by.dispatch();
  for (const actor of order) await by.held.pass(actor);
  by.held.open();
  const [{ said, before }, { status }] = await by.clock.until(Promise.all([answer, run]));
  return { said, before, status, published: by.published(), state: by.entry(KEY)?.state };
}

const writers: readonly Readonly<{
  name: string;
  write: (by: Setting) => Promise<string>;
  success: string;
  late: string;
  mayBoth: boolean;
}>[] = [
  {
    name: 'a program cancels',
    write: (by) => by.program(true),
    success: 'cancelled',
    late: 'tooLate',
    mayBoth: false,
  },
  {
    name: 'a program replaces',
    write: (by) => by.program(false),
    success: 'scheduled',
    late: 'tooLate',
    mayBoth: true,
  },
  {
    name: 'a message cancels',
    write: (by) => by.message({ cancel: 'true' }),
    success: 'cancelled',
    late: 'stale',
    mayBoth: false,
  },
  {
    name: 'a message replaces',
    write: (by) => by.message({}),
    success: 'scheduled',
    late: '-',
    mayBoth: true,
  },
];

for (const { name, write, success, late, mayBoth } of writers) {
  test(`${name} while the task is dispatched: success is final, and too late says so, in every order`, async (t) => {
    const seen = new Set<string>();
    for (const order of orders(STEPS.task, STEPS.writer)) {
      const { said, before, status, published, state } = await race(order, write);
      const outcome = `${said}, published ${published.length}, ${state}`;
      seen.add(outcome);
      const what = `${order.join(' ')}: ${outcome}`;
      assert.equal(status, 204, what);
      assert.ok(said === success || said === late, what);
      if (said === late) assert.deepEqual([published, state], [['old'], 'delivered'], what);
      // After a success the old one is gone for good, unless the new one came when it had been delivered.
      if (said === success && !mayBoth) assert.deepEqual([published, state], [[], 'cancelled'], what);
      if (said === success && late !== '-') assert.equal(published.length, before, what);
      if (said === success && mayBoth) assert.ok(published.length <= 1 && state !== 'delivered', what);
    }
    assert.ok(seen.size >= 2, [...seen].join('; '));
    t.diagnostic([...seen].join('; '));
  });
}
