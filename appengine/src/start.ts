/**
 * The republisher put together from its configuration. The caller of `start` closes it: `close` stops taking tasks,
 * ends those that wait for another process (their queue sends them again), gives publishes six seconds to finish, aborts
 * what is left then, and closes the clients made here.
 */
import type { Firestore } from '@google-cloud/firestore';
import type { Clock, Log } from 'pubsub-guarantees';
import { deadLettering } from 'pubsub-guarantees/dead-letters';
import { republish } from 'pubsub-guarantees/delay';
import { lazyPayloads } from 'pubsub-guarantees/payload';
import { untilStopped } from 'pubsub-guarantees/publish';
import { bytesInFlight, payloadsThatFit } from 'pubsub-guarantees/receive';
import { lazyLedger } from 'pubsub-guarantees/schedules';
import { severalQueues } from 'pubsub-guarantees/tasks';
import { cloudTasksClient, cloudTasksQueue } from 'pubsub-guarantees/tasks/cloud-tasks';
import { pubsubClient, pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';
import { authentication } from './auth.ts';
import type { Config } from './config.ts';
import { googleKeys, type KeyReader } from './google-keys.ts';
import { type Running, startServer } from './server.ts';

/** Below what main.ts allows for the whole end: an aborted task is still answered, and its entry in the ledger written. */
const FINISH_MS = 6_000;

export async function start(
  config: Config,
  clock: Clock,
  log: Log,
  keys: KeyReader = googleKeys(),
): Promise<Running> {
  const stop = new AbortController();
  const cutOff = new AbortController();
  const pubsub = pubsubClient({ projectId: config.project, emulatorHost: config.emulators.pubsub });
  const connected = pubsubPublisher(pubsub);
  const publisher = untilStopped(connected, cutOff.signal);
  const tasks = cloudTasksClient({ projectId: config.project, emulatorHost: config.emulators.tasks });
  const { collectionPrefix } = config.firestore;
  const firestore = lazyFirestore(config);
  const room = bytesInFlight({ limit: config.maxBytesInFlight, clock, log, capability: 'republish' });
  const release = async (): Promise<void> => {
    await connected.close();
    await Promise.all([pubsub.close(), tasks.close(), firestore.terminate()]);
  };
  try {
    const { queues, target } = config;
    const named = queues.map((queue) => ({
      name: queue,
      queue: cloudTasksQueue(tasks, { queue, target, clock }),
    }));
    const answer = republish(
      {
        publisher,
        queue: severalQueues(named),
        deadLetters: deadLettering(publisher, config.deadLetterTopic),
      },
      {
        clock,
        log,
        // As the functions name them. Nothing is loaded or read before a task asks for it.
        ledger: lazyLedger(async () => {
          const { firestoreLedger } = await import('pubsub-guarantees/schedules/firestore');
          return firestoreLedger(await firestore.client(), {
            collection: `${collectionPrefix}-schedules`,
            clock,
          });
        }),
        payloads: payloadsThatFit(
          lazyPayloads(async () => {
            const { firestorePayloads } = await import('pubsub-guarantees/payload/firestore');
            return firestorePayloads(await firestore.client(), {
              collection: `${collectionPrefix}-payload`,
              clock,
            });
          }),
          room,
        ),
        allowedTopics: config.allowedTopics,
        stop: stop.signal,
        ...(config.maxAttempts !== undefined && { maxAttempts: config.maxAttempts }),
      },
    );
    const server = await startServer(
      {
        authenticate: authentication(config.callers, keys),
        republish: answer,
        room,
        log,
      },
      { port: config.port, ...(config.host !== undefined && { host: config.host }) },
    );
    return {
      port: server.port,
      async close() {
        stop.abort();
        const timer = setTimeout(() => cutOff.abort(), FINISH_MS);
        await server.close();
        clearTimeout(timer);
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** One client for both, made when a task first refers to what it keeps. */
function lazyFirestore({ project, firestore }: Config): Readonly<{
  client(): Promise<Firestore>;
  terminate(): Promise<void>;
}> {
  let made: Promise<Firestore> | undefined;
  return {
    client() {
      made ??= import('@google-cloud/firestore').then(
        ({ Firestore }) => new Firestore({ projectId: project, databaseId: firestore.database }),
      );
      return made;
    },
    terminate: async () => (await made)?.terminate(),
  };
}
