/**
 * Plays one schedule against the inbox, on virtual time, and says what went wrong: three processes over one store, whose
 * requests are lost, delayed or repeated, and which are paused, or die at any await. Deliveries come back until they are
 * acked. After a while nothing fails any more, and then everything must come to an end.
 */
import { type Clock, sleep } from '../../../shared/src/clock.ts';
import { PermanentError, storeUnavailable } from '../../../shared/src/errors.ts';
import { compose } from '../../../shared/src/handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import { silent } from '../../../shared/src/log.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import type { Publisher } from '../../../shared/src/publish/publisher.ts';
import { virtualClock } from '../../../shared/src/testing/index.ts';
import { documentInbox, type InboxDocuments } from '../../../shared/src/dedup/document-inbox.ts';
import { inbox } from '../../../shared/src/dedup/inbox.ts';
import { memoryInboxDocuments, type MemoryTransaction } from '../../../shared/src/dedup/inbox-memory.ts';
import type { InboxHandler } from '../../../shared/src/dedup/inbox-run.ts';
import { aContext, aMessage } from '../../../shared/src/testing/deliveries.ts';
import { supervise } from '../engine/supervisor.ts';
import { inTurn, type NetworkFault, send } from '../engine/faults.ts';
import { plannedDeaths } from '../engine/places.ts';
import { faultyDocuments } from './fixture.ts';
import { deathSites, type Site, startInboxProcess } from './inbox-process.ts';
import type { InboxSchedule } from './inbox-schedule.ts';

/** Breaks the inbox on purpose, to see that the property notices. */
export type Mutation = (documents: InboxDocuments<MemoryTransaction>) => InboxDocuments<MemoryTransaction>;

type Run = InboxSchedule['runs'][number];

const NO_RUN: Run = { steps: [], ends: 'ack', isDeaf: false, reads: false };
const WORKERS = 3;
const ACK_DEADLINE_MS = 60_000;
const BACK_OFF_MS = 10_000;
const FAULTS_END_MS = 300_000;
const ATTEMPTS = 200;
const LIMIT_MS = (ACK_DEADLINE_MS + BACK_OFF_MS) * ATTEMPTS;
const TIMEOUT_MS = 5_000;

export async function playInbox(
  { publishes, runs, faults, pauses, deaths }: InboxSchedule,
  died: (site: Site) => void,
  mutate: Mutation = (same) => same,
): Promise<readonly string[]> {
  const clock = virtualClock();
  const broken: string[] = [];
  const hasFaults = (): boolean => clock.monotonic() < FAULTS_END_MS;
  const nextFault = inTurn(faults);
  const fault = (): NetworkFault | undefined => (hasFaults() ? nextFault() : undefined);
  const network = <Value>(_request: string, apply: () => Promise<Value>): Promise<Value> =>
    send(clock, unrepeated(fault()), apply, storeUnavailable);
  const memory = memoryInboxDocuments({ clock, network, shards: 1 });
  const documents: InboxDocuments<MemoryTransaction> = {
    ...memory,
    ...faultyDocuments(memory, clock, fault),
  };

  /** Which runs' messages have left, by key. */
  const left = new Map<string, Set<string>>();
  const publisher: Publisher = {
    async publish({ data, attributes }) {
      const key = attributes['key'] ?? '';
      const send = async (): Promise<void> =>
        void left.set(key, (left.get(key) ?? new Set()).add(Buffer.from(data).toString()));
      await network('publish', send);
      return '1';
    },
  };

  let started = 0;
  /** Committed runs of a key: each leaves a record of its own, written blindly. */
  const committed = (key: string): string[] =>
    Array.from({ length: started }, (_, index) => String(index + 1)).filter((run) =>
      memory.peek(`${key}/${run}`),
    );
  const handlerOf =
    (own: () => Clock): InboxHandler<MemoryTransaction> =>
    async (message, { transaction, signal }) => {
      const key = message.attributes['dedupId'] ?? '';
      started += 1;
      const run = String(started);
      const { steps, ends, isDeaf, reads } = runs[started % runs.length] ?? NO_RUN;
      const total = reads ? Number((await transaction.get('total')) ?? 0) : 0;
      for (const step of steps) {
        await sleep(own(), step, isDeaf ? undefined : signal);
        if (signal.aborted && !isDeaf) throw signal.reason;
      }
      transaction.set(`${key}/${run}`, reads ? 'reads' : 'blind');
      if (reads) transaction.set('total', total + 1);
      if (hasFaults() && ends === 'retry') return retry(new Error('later'));
      if (hasFaults() && ends === 'deadLetter') return deadLetter(new PermanentError('BAD', 'never'));
      return ack('handled', [{ topic: 't', data: Buffer.from(run), attributes: { key } }]);
    };

  const due = plannedDeaths(
    deaths.map(({ site, hit }) => ({ place: deathSites[site % deathSites.length] as Site, hit })),
    died,
  );
  const workers = supervise(WORKERS, (_slot, replace) => {
    const worker = startInboxProcess(clock, mutate(documents), publisher, {
      dies: (site) => hasFaults() && due.dies(site),
      died: replace,
    });
    const store = documentInbox(worker.documents, worker.clock, TIMEOUT_MS);
    const options = { clock: worker.clock, publisher: worker.publisher };
    const handle = inbox(store, options)(worker.handler(handlerOf(() => worker.clock)));
    return { clock: worker.clock, pause: worker.pause, deliver: compose(handle, []) };
  });
  for (const { at, worker, milliseconds } of pauses)
    clock.after(at, () => workers.at(worker).pause(milliseconds));

  let deliveries = 0;
  const settled = (key: string, outcome: Outcome): boolean => {
    const effects = committed(key).length;
    const at = `of ${key} at ${clock.monotonic()} ms`;
    if (outcome.kind === 'deadLetter' && effects > 0) broken.push(`a dead letter ${at}, whose work is done`);
    if (outcome.kind !== 'ack') return false;
    if (effects !== 1) broken.push(`an ack ${at} with ${effects} effects`);
    if (!left.has(key)) broken.push(`an ack ${at} before its message was published`);
    return true;
  };
  const settle = async (id: number, key: string, at: number): Promise<void> => {
    await sleep(clock, at);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const worker = workers.at((deliveries += 1));
      const context = aContext(worker.clock, { deadline: clock.monotonic() + ACK_DEADLINE_MS });
      const noAnswer = sleep(clock, ACK_DEADLINE_MS).then((): Outcome => retry(new Error('no answer')));
      const delivered = worker.deliver(aMessage(String(id), { dedupId: key }), context);
      if (settled(key, await Promise.race([delivered, noAnswer]))) return;
      await sleep(clock, BACK_OFF_MS);
    }
    broken.push(`message ${id} was never acked`);
  };
  const all = publishes.map(({ key, at }, id) => settle(id, `key-${key}`, at));
  await clock.until(Promise.all(all), LIMIT_MS);
  await clock.advance(FAULTS_END_MS);

  const { signal } = new AbortController();
  await clock.until(relay(memory.outbox, publisher, { clock, log: silent }).sweep({ signal }));
  const keys = new Set(publishes.map(({ key }) => `key-${key}`));
  let reading = 0;
  for (const key of keys) {
    const done = committed(key);
    reading += done.filter((run) => memory.peek(`${key}/${run}`) === 'reads').length;
    if (done.length !== 1) broken.push(`${key} has ${done.length} effects`);
    const messages = [...(left.get(key) ?? [])].join(', ');
    if (messages !== done.join(', ')) broken.push(`${key}: messages of runs ${messages} left`);
  }
  const total = memory.peek('total') ?? 0;
  if (total !== reading) broken.push(`${reading} runs have read and the total is ${JSON.stringify(total)}`);
  if (memory.rows().length > 0) broken.push('a row is left');
  return broken;
}

/** A transaction's client does not send a commit twice: the caller gets an unknown outcome. */
function unrepeated(fault: NetworkFault | undefined): NetworkFault | undefined {
  if (fault?.kind === 'repeated') return { kind: 'reply lost' };
  return fault?.kind === 'late copy' ? { kind: 'delayed', byMs: fault.byMs } : fault;
}
