/**
 * Where a topic's messages may lie and with which key they are encrypted: checked and given back. This server has one
 * place, which is no region, and encrypts nothing, so both change nothing else.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { StoragePolicy } from './wire.ts';

/** As in `europe-west1` and `northamerica-northeast2`. */
const REGION = /^[a-z]+-[a-z]+\d+$/;
const KEY = /^projects\/[^/]+\/locations\/[^/]+\/keyRings\/[^/]+\/cryptoKeys\/[^/]+$/;

/** Throws INVALID_ARGUMENT for what names no region: "An empty list […] is not a valid configuration" (pubsub.proto). */
export function storagePolicy(given: StoragePolicy | null): StoragePolicy | null {
  if (given === null) return null;
  const { allowedPersistenceRegions: regions, enforceInTransit = false } = given;
  if (regions.length === 0) {
    throw invalidArgument('Invalid message_storage_policy: allowed_persistence_regions must not be empty.');
  }
  const unknown = regions.find((region) => !REGION.test(region));
  if (unknown !== undefined) {
    throw invalidArgument(`Invalid message_storage_policy: ${unknown} is not a Google Cloud region.`);
  }
  return { allowedPersistenceRegions: [...regions], enforceInTransit };
}

/** Throws INVALID_ARGUMENT unless it is '' or has the form of a key's name. */
export function kmsKeyName(given: string): string {
  if (given === '' || KEY.test(given)) return given;
  throw invalidArgument(
    `Invalid kms_key_name: ${given}. The expected format is projects/*/locations/*/keyRings/*/cryptoKeys/*.`,
  );
}
