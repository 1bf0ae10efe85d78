/**
 * Triggers: an HTTP request for each document that was created in a collection, as Eventarc sends it.
 *
 * An event leaves after its commit was applied, and is delivered at least once: until the endpoint answers with success
 * the same event, under the same ID, is sent again, with pauses that double, for a day
 * (https://cloud.google.com/eventarc/docs/retry-events). In no order. What is not delivered is gone with the process, and
 * where another state is loaded.
 */
import { randomUUID } from 'node:crypto';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { type Cancel, type Clock, systemClock } from '../clock.ts';
import { createHttpSender } from '../cloud-tasks/http-sender.ts';
import type { Outcome } from '../cloud-tasks/outcome.ts';
import type { Faults } from '../faults/faults.ts';
import { outgoing } from '../faults/outgoing.ts';
import type { Change } from './doc.ts';
import { createdEvent, type SentEvent } from './document-event.ts';
import { checkCollectionId } from './names.ts';

export type Trigger = Readonly<{
  /** The collection's path, for example `orders` or `shops/s1/orders`: its documents, and not those below them. */
  collection: string;
  /** Where events go. */
  url: string;
  /** Default: `(default)`. Of any project. */
  database?: string;
}>;

export type Triggers = Readonly<{
  /** What a commit has changed. */
  committed(changes: readonly Change[]): void;
  /** Events that wait to be sent, or for an answer; those that wait for another attempt are not among them. */
  inFlight(): number;
  /** Drops everything that is not delivered. */
  clear(): void;
}>;

export type TriggerPorts = Readonly<{
  clock: Clock;
  /** Those that are there now. */
  triggers: () => readonly Trigger[];
  /** Of google.firestore.v1.Firestore. */
  definition: ServiceDefinition;
  faults: Faults | undefined;
  remoteTargets: boolean;
  log: (line: string) => void;
}>;

/** Of Eventarc's own subscriptions (same page). */
const BACKOFF_MS = { min: 10_000, max: 600_000 };
const KEPT_MS = 86_400_000;
/** How long an endpoint may take, in real time: it works in real time. */
const DEADLINE_MS = 60_000;
/** What acknowledges a push of Pub/Sub, by which Eventarc delivers (https://cloud.google.com/pubsub/docs/push#receive_push). */
const SUCCESS: ReadonlySet<number> = new Set([200, 201, 202, 204]);

type Delivery = Readonly<{ event: SentEvent; trigger: Trigger; place: string; untilMs: number }>;

type Answer = Outcome | Readonly<{ kind: 'lost' }>;

/** Throws an error of one line that names the trigger. */
export function checkTriggers(triggers: readonly Trigger[]): void {
  for (const { collection, url } of triggers) {
    const segments = collection.split('/');
    if (segments.length % 2 === 0) {
      throw new Error(
        `triggers: ${JSON.stringify(collection)} is a document; accepted: the path of a collection`,
      );
    }
    for (const segment of segments) checkCollectionId(segment);
    const protocol = URL.canParse(url) ? new URL(url).protocol : '';
    if (protocol !== 'http:' && protocol !== 'https:') {
      throw new Error(
        `triggers: ${JSON.stringify(url)} of ${collection} is no URL; accepted: http:// or https://`,
      );
    }
  }
}

export function firestoreTriggers(ports: TriggerPorts): Triggers {
  const { clock, triggers, definition, faults, remoteTargets, log } = ports;
  const sender = createHttpSender(systemClock(), remoteTargets);
  const requests = outgoing<Answer>({
    faults,
    clock,
    service: 'firestore',
    method: 'trigger',
    answered: (status) => ({ kind: 'response', status }),
    broken: (error) => ({ kind: 'unreachable', error }),
    lost: { kind: 'lost' },
  });
  const due = new Set<NodeJS.Immediate>();
  const waiting = new Set<Cancel>();
  const onWire = new Set<Delivery>();

  function soon(delivery: Delivery): void {
    const immediate = setImmediate(() => {
      due.delete(immediate);
      attempt(delivery, 1);
    });
    due.add(immediate);
  }

  function attempt(delivery: Delivery, count: number): void {
    const { event, trigger, place } = delivery;
    onWire.add(delivery);
    const send = (answered: (outcome: Answer) => void) => {
      sender.send({ url: trigger.url, method: 'POST', ...event, deadlineMs: DEADLINE_MS }, answered);
      // What is on the wire ends with the sender alone.
      return () => undefined;
    };
    requests.send(place, send, (answer) => {
      // Dropped meanwhile.
      if (!onWire.delete(delivery)) return;
      if (answer.kind === 'lost' || (answer.kind === 'response' && SUCCESS.has(answer.status))) return;
      again(delivery, count, reasonOf(answer));
    });
  }

  function again(delivery: Delivery, count: number, reason: string): void {
    const { event, trigger, untilMs } = delivery;
    const pauseMs = Math.min(BACKOFF_MS.min * 2 ** (count - 1), BACKOFF_MS.max);
    const what = `the event of ${event.headers['ce-subject']} for ${trigger.url} failed: ${reason}`;
    if (clock.now() + pauseMs > untilMs) return log(`${what}; it is given up after a day`);
    log(`${what}; it is sent again in ${pauseMs / 1_000} s`);
    const cancel = clock.after(pauseMs, () => {
      waiting.delete(cancel);
      attempt(delivery, count + 1);
    });
    waiting.add(cancel);
  }

  return {
    committed(changes) {
      const all = triggers();
      if (all.length === 0) return;
      for (const { name, before, after } of changes) {
        if (before !== undefined || after === undefined) continue;
        const [project = '', database = ''] = databaseOf(name.full);
        const place = `projects/${project}/databases/${database}/documents/${name.collection}`;
        for (const trigger of all) {
          if (trigger.collection !== name.collection || (trigger.database ?? '(default)') !== database)
            continue;
          const event = createdEvent(definition, after, randomUUID());
          soon({ event, trigger, place, untilMs: clock.now() + KEPT_MS });
        }
      }
    },
    inFlight: () => due.size + onWire.size + requests.beyond(),
    clear() {
      for (const immediate of due) clearImmediate(immediate);
      for (const cancel of waiting) cancel();
      due.clear();
      waiting.clear();
      onWire.clear();
      requests.close();
      sender.close();
    },
  };
}

function databaseOf(full: string): readonly string[] {
  const [, project = '', , database = ''] = full.split('/', 4);
  return [project, database];
}

function reasonOf(answer: Outcome): string {
  if (answer.kind === 'response') return `status ${answer.status}`;
  return answer.kind === 'timeout' ? `no answer within ${DEADLINE_MS / 1_000} s` : answer.error;
}
