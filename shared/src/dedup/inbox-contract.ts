/**
 * What every inbox must do, as one suite over a factory: the store's own promises, and the mode as a handler sees it.
 * It goes beside the claim store contract, which every inbox must pass too.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Clock } from '../clock.ts';
import { codeOf, PermanentError } from '../errors.ts';
import { compose } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { memoryPublisher } from '../testing/index.ts';
import { claimed, request } from './contract.ts';
import { inbox, type InboxOptions } from './inbox.ts';
import type { InboxHandler } from './inbox-run.ts';
import type { Completion, InboxStore } from './inbox-store.ts';
import { silent } from '../log.ts';
import { relay } from '../outbox/relay.ts';
import type { Row } from '../outbox/rows.ts';
import { aContext, aMessage } from '../testing/deliveries.ts';

export type InboxUnderTest<Tx> = Readonly<{
  store: InboxStore<Tx>;
  clock: Clock;
  get(transaction: Tx, id: string): Promise<number>;
  set(transaction: Tx, id: string, value: number): void;
  /** What is committed; 0 where there is nothing. */
  read(id: string): Promise<number>;
  /** Lets that much time pass on the store's clock. */
  pass(milliseconds: number): Promise<void>;
  /** Waits, and moves time where it does not move by itself. */
  until<Value>(done: Promise<Value>): Promise<Value>;
  close(): Promise<void>;
}>;

const SHORT_MS = 150;
const { signal } = new AbortController();
const code = (wanted: string) => (error: unknown) => codeOf(error) === wanted;
const said = (outcome: Outcome): string => (outcome.kind === 'ack' ? outcome.reason : codeOf(outcome.error));

let made = 0;
const fresh = (): string => `account-${process.pid}-${Date.now()}-${(made += 1)}`;

export function inboxContract<Tx>(name: string, start: () => Promise<InboxUnderTest<Tx>>): void {
  describe(`the inbox contract, ${name}`, () => {
    let subject: InboxUnderTest<Tx>;
    let store: InboxStore<Tx>;
    before(async () => {
      subject = await start();
      store = subject.store;
    });
    after(() => subject.close());

    const completion = ({ held }: Pick<Completion, 'held'>, texts: readonly string[] = []): Completion => {
      const { key } = held.request;
      const row = (text: string, n: number) => ({
        id: `${key}.w.${n}`,
        topic: 'projects/p/topics/t',
        message: Buffer.from(text),
        group: `${key}.w`,
      });
      return { held, rows: texts.map(row) };
    };
    /** Of one commit, in their order. */
    const rowsOf = async (key: string): Promise<readonly Row[]> => {
      const first = await store.outbox.first(`${key}.`);
      const group = first?.id.slice(0, first.id.lastIndexOf('.'));
      return group === undefined ? [] : store.outbox.behind(group, `${group}.`, 100);
    };
    /** Adds ten, the way that is wrong when it happens twice. */
    const deposit = async (transaction: Tx, account: string): Promise<void> =>
      subject.set(transaction, account, (await subject.get(transaction, account)) + 10);
    const working = (handler: InboxHandler<Tx>, options: InboxOptions = {}) => {
      let runs = 0;
      const counted: InboxHandler<Tx> = (message, context) => {
        runs += 1;
        return handler(message, context);
      };
      const handle = compose(inbox(store, { clock: subject.clock, ...options })(counted), []);
      const deliver = (id: string, dedupId = id): Promise<Outcome> =>
        subject.until(handle(aMessage(id, { dedupId }), aContext(subject.clock)));
      return { handle, deliver, runs: () => runs };
    };

    test('a commit has the writes, the completion and the rows; the key is done for every delivery', async () => {
      const account = fresh();
      const first = await claimed(store, request());
      const { key } = first.held.request;
      await store.transact(async (transaction) => {
        await deposit(transaction, account);
        return completion(first, ['a', 'b']);
      });
      assert.equal(await subject.read(account), 10);
      assert.deepEqual(await store.look(first.held), { kind: 'completed' });
      const rows = await rowsOf(key);
      assert.deepEqual(
        rows.map((row) => Buffer.from(row.message).toString()),
        ['a', 'b'],
      );
      const head = await store.outbox.first(`${key}.`);
      assert.ok((head?.freeMs ?? 0) > (head?.nowMs ?? Infinity), 'they are leased to the delivery');
      assert.equal((await store.claim(request({ key }))).kind, 'duplicate');
      assert.equal(await store.withdraw(first.held), 'completed');
      assert.equal((await store.claim(request({ key }))).kind, 'duplicate');
    });

    test('what an attempt throws comes back as it is, and nothing of it is committed', async () => {
      const account = fresh();
      const first = await claimed(store, request());
      const thrown = new Error('handler');
      const failing = store.transact(async (transaction) => {
        await deposit(transaction, account);
        throw thrown;
      });
      await assert.rejects(failing, (error) => error === thrown);
      assert.equal(await subject.read(account), 0);
      assert.equal((await store.look(first.held)).kind, 'held');
    });

    test('a lease that was taken over while the handler ran: its writes are not committed', async () => {
      const account = fresh();
      const first = await claimed(store, request({ leaseMs: SHORT_MS }));
      const { key } = first.held.request;
      let thief: Awaited<ReturnType<typeof claimed>> | undefined;
      const robbed = store.transact(async (transaction) => {
        await deposit(transaction, account);
        await subject.pass(SHORT_MS * 2);
        thief = await claimed(store, request({ key }));
        return completion(first, ['never']);
      });
      await assert.rejects(robbed, code('TRANSACTION_REFUSED'));
      assert.deepEqual([await subject.read(account), await rowsOf(key)], [0, []]);
      assert.deepEqual(await store.look(first.held), { kind: 'lost' });
      assert.equal(await store.withdraw(first.held), 'lost');
      assert.ok(thief !== undefined);
      const { held } = thief;
      await store.transact(async () => completion({ held }));
      assert.equal((await store.claim(request({ key }))).kind, 'duplicate');
    });

    test('an expired claim that no other delivery took is committed; one that a renewal changed is not', async () => {
      const account = fresh();
      const first = await claimed(store, request({ leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      await store.transact(async (transaction) => {
        await deposit(transaction, account);
        return completion(first);
      });
      assert.equal(await subject.read(account), 10);
      const other = await claimed(store, request());
      await store.renew(other.held, 1);
      await assert.rejects(
        store.transact(async () => completion(other)),
        code('TRANSACTION_REFUSED'),
      );
      const status = await store.look(other.held);
      assert.ok(status.kind === 'held');
      await store.transact(async () => completion(status));
    });

    test('after a withdrawal what is still in flight cannot be committed', async () => {
      const account = fresh();
      const first = await claimed(store, request());
      const { promise: opened, resolve: open } = Promise.withResolvers<void>();
      const late = store.transact(async (transaction) => {
        await deposit(transaction, account);
        await opened;
        return completion(first, ['never']);
      });
      assert.equal(await store.withdraw(first.held), 'withdrawn');
      open();
      await assert.rejects(late, code('TRANSACTION_REFUSED'));
      assert.deepEqual([await subject.read(account), await rowsOf(first.held.request.key)], [0, []]);
      assert.equal((await store.claim(request({ key: first.held.request.key }))).kind, 'claimed');
    });

    test('rows come in pages in the order of their IDs, and are removed any number of times', async () => {
      const first = await claimed(store, request());
      const { key } = first.held.request;
      await store.transact(async () => completion(first, ['a', 'b', 'c']));
      const ids = [0, 1, 2].map((n) => `${key}.w.${n}`);
      const idsOf = (page: readonly { id: string }[]) => page.map(({ id }) => id);
      assert.equal((await store.outbox.first(`${key}.`))?.id, ids[0]);
      assert.deepEqual(idsOf(await store.outbox.behind(`${key}.w`, ids[0] ?? '', 1)), ids.slice(1, 2));
      assert.deepEqual(idsOf(await store.outbox.behind(`${key}.w`, ids[1] ?? '', 100)), ids.slice(2));
      for (let time = 0; time < 2; time += 1) await store.outbox.remove(ids);
      assert.deepEqual(await rowsOf(key), []);
    });

    test('B32: a handler that wrote and then failed leaves nothing; redelivered three times it adds ten once', async () => {
      const account = fresh();
      let fails = true;
      const reported: number[] = [];
      const { deliver, runs } = working(async (_message, { transaction, afterCommit }) => {
        await deposit(transaction, account);
        afterCommit(() => reported.push(runs()));
        if (fails) throw new Error('killed before the commit');
        return ack();
      });
      assert.equal((await deliver(account)).kind, 'retry');
      assert.equal(await subject.read(account), 0);
      fails = false;
      const outcomes = [await deliver(account), await deliver(account), await deliver(account)];
      assert.deepEqual(outcomes.map(said), ['handled', 'duplicate', 'duplicate']);
      assert.deepEqual([await subject.read(account), runs()], [10, 2]);
      assert.deepEqual(reported, [2], 'what is called after the commit is of the run that was committed');
    });

    for (const outcome of [retry(new Error('later')), deadLetter(new PermanentError('BAD', 'never'))]) {
      test(`an outcome of ${outcome.kind} drops the writes and frees the message at once`, async () => {
        const account = fresh();
        const { deliver, runs } = working(async (_message, { transaction, afterCommit }) => {
          await deposit(transaction, account);
          afterCommit(() => assert.fail('nothing was committed'));
          return outcome;
        });
        assert.deepEqual([await deliver(account), await deliver(account)], [outcome, outcome]);
        assert.deepEqual([await subject.read(account), runs()], [0, 2]);
      });
    }

    test('sixteen deliveries of one message at once are one effect and sixteen acks', async () => {
      const account = fresh();
      const { handle, runs } = working(async (_message, { transaction }) => {
        await deposit(transaction, account);
        return ack();
      });
      const one = () => handle(aMessage(account), aContext(subject.clock));
      const outcomes = await subject.until(Promise.all(Array.from({ length: 16 }, one)));
      assert.ok(outcomes.every(({ kind }) => kind === 'ack'));
      assert.deepEqual([await subject.read(account), runs()], [10, 1]);
    });

    test('two messages that change the same documents crosswise: one runs again, and both effects happen once', async () => {
      const accounts = [fresh(), fresh()];
      const { promise: opened, resolve: open } = Promise.withResolvers<void>();
      let arrived = 0;
      const committed: string[] = [];
      const { handle, runs } = working(async (message, { transaction, afterCommit }) => {
        afterCommit(() => committed.push(message.id));
        const [near = '', far = ''] = message.id === 'x' ? accounts : accounts.toReversed();
        const balance = await subject.get(transaction, near);
        arrived += 1;
        if (arrived === 2) open();
        await opened;
        const other = await subject.get(transaction, far);
        subject.set(transaction, near, balance + 10);
        subject.set(transaction, far, other + 10);
        return ack();
      });
      const context = () => aContext(subject.clock, { source: `of-${accounts[0]}` });
      const both = ['x', 'y'].map((id) => handle(aMessage(id), context()));
      const outcomes = await subject.until(Promise.all(both));
      assert.deepEqual(outcomes.map(said), ['handled', 'handled']);
      assert.deepEqual(await Promise.all(accounts.map((id) => subject.read(id))), [20, 20]);
      assert.ok(runs() >= 3, 'one of the two has read what the other changed');
      assert.deepEqual(committed.toSorted(), ['x', 'y']);
    });

    test('messages leave after the commit, once each, with the dedupId of their place; their rows are gone', async () => {
      const account = fresh();
      const publisher = memoryPublisher();
      const { deliver } = working(
        async (_message, { transaction }) => {
          await deposit(transaction, account);
          const message = (n: number) => ({
            topic: 'out',
            data: Buffer.from(`${n}`),
            attributes: { n: `${n}` },
          });
          return ack('handled', [message(1), message(2)]);
        },
        { publisher },
      );
      assert.deepEqual([await deliver(account), await deliver(account)], [ack(), ack('duplicate')]);
      const texts = publisher.published.map(({ data }) => Buffer.from(data).toString());
      assert.deepEqual(texts, ['1', '2']);
      assert.equal(new Set(publisher.published.map(({ attributes }) => attributes['dedupId'])).size, 2);
      const { done: published } = await relay(store.outbox, publisher, {
        clock: subject.clock,
        log: silent,
      }).sweep({
        signal,
      });
      assert.deepEqual([published, await subject.read(account)], [0, 10]);
    });

    test('a message that cannot be published keeps the delivery; the next one publishes it, and only it', async () => {
      const account = fresh();
      const publisher = memoryPublisher();
      publisher.failOn(2, 'refused');
      const message = (n: number) => ({ topic: 'out', data: Buffer.from(`${n}`), attributes: {} });
      const { deliver, runs } = working(async () => ack('handled', [message(1), message(2)]), {
        publisher,
        lease: '1s',
      });
      assert.equal(said(await deliver(account)), 'OUTBOX_UNPUBLISHED');
      assert.equal(said(await deliver(account)), 'duplicate');
      const texts = publisher.published.map(({ data }) => Buffer.from(data).toString());
      assert.deepEqual([texts, runs()], [['1', '2'], 1]);
    });
  });
}
