/**
 * Makes the calls of a seed, as a client would. What a server refuses is an error of one line with its message and the
 * place in the seed.
 */
import type { ServiceDefinition, ServiceError } from '@grpc/grpc-js';
import { cloudTasksDefinition } from '../cloud-tasks/protos.ts';
import { firestoreDefinition } from '../firestore/index.ts';
import { pubsubServiceDefinitions } from '../pubsub/protos.ts';
import { caller } from '../stack/grpc-call.ts';
import { type Service, TITLE } from '../stack/services.ts';
import { SeedError } from './named.ts';
import type { Seed, SeedStep } from './seed.ts';

const DEFINITION: Readonly<Record<SeedStep['rpc'], () => ServiceDefinition>> = {
  CreateTopic: () => pubsubServiceDefinitions().publisher,
  CreateSubscription: () => pubsubServiceDefinitions().subscriber,
  CreateQueue: cloudTasksDefinition,
  Commit: firestoreDefinition,
};

/** `addresses`: `host:port` of the services that run. */
export async function applySeed(
  { steps }: Seed,
  addresses: Readonly<Partial<Record<Service, string>>>,
): Promise<void> {
  for (const [rpc, same] of Map.groupBy(steps, (step) => step.rpc)) {
    const [first] = same;
    if (first === undefined) continue;
    const address = addresses[first.service];
    if (address === undefined) {
      throw new SeedError(first.at, `${TITLE[first.service]} is not among the services that are started`);
    }
    const client = caller(address, DEFINITION[rpc]());
    try {
      await Promise.all(
        same.map(({ at, request }) =>
          client.call(rpc, request).catch((error: ServiceError) => {
            throw new SeedError(at, error.details);
          }),
        ),
      );
    } finally {
      client.close();
    }
  }
}
