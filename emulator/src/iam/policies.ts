/**
 * The policies of resources, in memory. A policy lives as long as its resource does: it is kept by the object that stands
 * for the resource, so that another one of the same name begins without a policy.
 */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import { checkedBindings, versionOf, type GivenPolicy, type Policy } from './policy.ts';

export type Policies = Readonly<{
  /** An empty one where none was set. */
  get(resource: object): Policy;
  /**
   * Throws as `checkedBindings` does, and ABORTED when `etag` is given and is not that of the policy now: another
   * caller has changed it between a read and this write.
   */
  set(resource: object, given: GivenPolicy): Policy;
  /** Undefined where none was set. */
  find(resource: object): Policy | undefined;
  /** As it was saved. */
  restore(resource: object, policy: Policy): void;
}>;

/** Of a policy that was never set, as the service gives it: ACAB in base64. */
const UNSET: Policy = { version: 0, bindings: [], etag: Buffer.from('ACAB', 'base64') };

export function createPolicies(now: () => number): Policies {
  const held = new WeakMap<object, Policy>();
  let lastMicros = 0n;
  // As the service's: a byte 7, and microseconds, which rise with every change.
  const freshEtag = (): Buffer => {
    const micros = BigInt(Math.floor(now())) * 1_000n;
    lastMicros = micros > lastMicros ? micros : lastMicros + 1n;
    const etag = Buffer.alloc(8);
    etag.writeBigUInt64BE((7n << 56n) | lastMicros);
    return etag;
  };
  const get = (resource: object): Policy => held.get(resource) ?? UNSET;
  return {
    get,
    find: (resource) => held.get(resource),
    set(resource, given) {
      const bindings = checkedBindings(given);
      const { etag } = get(resource);
      const expected = given.etag ?? Buffer.alloc(0);
      if (expected.length > 0 && !etag.equals(expected)) throw changed(expected, etag);
      const policy = { version: versionOf(bindings), bindings, etag: freshEtag() };
      held.set(resource, policy);
      return policy;
    },
    restore: (resource, policy) => void held.set(resource, policy),
  };
}

/** In the words of the service: https://github.com/pulumi/pulumi-google-native/issues/862 */
const changed = (expected: Buffer, etag: Buffer): StatusError =>
  new StatusError(
    status.ABORTED,
    `There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff. The request's ETag '${expected.toString('base64')}' did not match the current policy's ETag '${etag.toString('base64')}'.`,
  );
