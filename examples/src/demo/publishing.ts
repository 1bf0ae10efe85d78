/**
 * Publishes the events with Google's own client, one client for each publisher named in the file, each event at its
 * time. Nothing is retried here beyond what the client does by itself: a publish that fails is written down as failed.
 */
import type { PubSub, Topic } from '@google-cloud/pubsub';
import { type Clock, sleep } from 'pubsub-guarantees';
import type { DemoEvent } from './event.ts';
import type { Published } from './observed.ts';

/** The client itself would go on trying for minutes. */
const ANSWER_MS = 20_000;

/** Resolves when every publish is answered, or as soon as `signal` is aborted. */
export async function publishAll(
  events: readonly DemoEvent[],
  connect: (publisher: string) => PubSub,
  clock: Clock,
  record: (published: Published) => void,
  signal: AbortSignal,
): Promise<void> {
  const topics = topicsOf(connect);
  const start = clock.monotonic();
  const answers: Promise<void>[] = [];
  for (const event of events.toSorted((left, right) => left.afterMs - right.afterMs)) {
    const wait = start + event.afterMs - clock.monotonic();
    if (wait > 0) await sleep(clock, wait, signal);
    if (signal.aborted) return;
    const topic = topics(event.publisher, event.topic);
    answers.push(publish(topic, event, clock).then(record));
  }
  await Promise.race([Promise.all(answers), aborted(signal)]);
}

async function publish(topic: Topic, event: DemoEvent, clock: Clock): Promise<Published> {
  const { data, attributes, orderingKey } = event;
  const answered = new AbortController();
  const late = sleep(clock, ANSWER_MS, answered.signal).then(() => {
    if (!answered.signal.aborted) throw new Error(`no answer within ${ANSWER_MS / 1_000} s`);
    return '';
  });
  try {
    const answer = topic.publishMessage({
      data,
      attributes: { ...attributes },
      ...(orderingKey !== undefined && { orderingKey }),
    });
    return { event, messageId: await Promise.race([answer, late]) };
  } catch (error) {
    // The client refuses an ordering key after a failure until `resumePublishing` is called.
    if (orderingKey !== undefined) topic.resumePublishing(orderingKey);
    return { event, error: error instanceof Error ? error.message : String(error) };
  } finally {
    answered.abort();
  }
}

function topicsOf(connect: (publisher: string) => PubSub): (publisher: string, name: string) => Topic {
  const clients = new Map<string, PubSub>();
  const topics = new Map<string, Topic>();
  return (publisher, name) => {
    const client = clients.get(publisher) ?? connect(publisher);
    clients.set(publisher, client);
    const topic = topics.get(`${publisher} ${name}`) ?? client.topic(name, { messageOrdering: true });
    topics.set(`${publisher} ${name}`, topic);
    return topic;
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
