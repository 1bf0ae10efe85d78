/**
 * What the function `saga` needs beside the others' clients: the definitions, and the stores in which an instance, the
 * record of its event and its outgoing messages are one commit. A process that dies leaves all of a commit or nothing.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { type Clock, ConfigError } from 'pubsub-guarantees';
import type { InboxStore } from 'pubsub-guarantees/dedup';
import { bad } from 'pubsub-guarantees/environment';
import type { SagaDefinition, SagaStore } from 'pubsub-guarantees/sagas';
import type { Config } from './config.ts';
import { claimCall } from './limits.ts';
import { outboxStore } from './outbox-clients.ts';
import type { SagaConfig } from './saga-config.ts';

export type SagaPorts = Readonly<{
  definitions: readonly SagaDefinition[];
  store: SagaStore<Transaction>;
  inbox: InboxStore<Transaction>;
}>;

/** Throws ConfigError where the definitions cannot be read. */
export async function sagaPorts(
  config: Config,
  { module }: SagaConfig,
  firestore: () => Promise<Firestore>,
  clock: Clock,
): Promise<SagaPorts> {
  const definitions = await definitionsIn(module);
  const [{ firestoreSagas }, { firestoreInbox }, client] = await Promise.all([
    import('pubsub-guarantees/sagas/firestore'),
    import('pubsub-guarantees/dedup/firestore'),
    firestore(),
  ]);
  const { collectionPrefix: prefix } = config.firestore;
  return {
    definitions,
    store: firestoreSagas(client, { collection: `${prefix}-sagas`, clock }),
    inbox: firestoreInbox(client, {
      collection: `${prefix}-claims`,
      outbox: await outboxStore(config, client, clock),
      clock,
      ...(config.dedup !== undefined && { callTimeout: claimCall(config.dedup.lease) }),
    }),
  };
}

/** A relative path is one from the folder in which the process runs: for a deployed function that of its sources. */
async function definitionsIn(module: string): Promise<readonly SagaDefinition[]> {
  let loaded: Readonly<{ default?: unknown }>;
  try {
    loaded = (await import(pathToFileURL(resolve(module)).href)) as typeof loaded;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const value = `${JSON.stringify(module)}, which cannot be loaded: ${reason}`;
    const option = { path: 'SAGA_MODULE', value, accepted: ACCEPTED };
    throw new ConfigError('INVALID_OPTION', `SAGA_MODULE is ${value}; accepted: ${ACCEPTED}`, {
      cause: error,
      option,
    });
  }
  const { default: list } = loaded;
  if (!Array.isArray(list) || list.length === 0) throw bad('SAGA_MODULE', module, ACCEPTED);
  return list as readonly SagaDefinition[];
}

const ACCEPTED = 'a file whose default export is a list of at least one saga, as defineSaga makes them';
