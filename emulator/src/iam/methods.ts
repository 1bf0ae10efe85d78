/**
 * The three methods of google.iam.v1.IAMPolicy over the resources of one server, as plain functions that throw a
 * StatusError. The project's administrator calls them: with a caller named they are not refused, since no policy could ever
 * be put in place otherwise; TestIamPermissions answers for that caller.
 */
import { status } from '@grpc/grpc-js';
import { invalidArgument, StatusError, unimplemented } from '../grpc-server.ts';
import { isPermitted } from './access.ts';
import type { Policies } from './policies.ts';
import type { GivenPolicy, Policy } from './policy.ts';
import { PERMISSIONS, type Collection } from './roles.ts';

/** The caller whose rights count, as a member of a policy. Undefined: everything is permitted. */
export type CallerNow = () => string | undefined;

export type IamPorts = Readonly<{
  policies: Policies;
  /** The object that stands for the resource. Throws NOT_FOUND, or INVALID_ARGUMENT for a name that cannot be. */
  resource(name: string): Readonly<{ collection: Collection; holder: object }>;
  caller: CallerNow;
}>;

type ByResource = Readonly<{ resource: string }>;
type SetRequest = ByResource &
  Readonly<{ policy: GivenPolicy | null; updateMask: Readonly<{ paths: readonly string[] }> | null }>;
type TestRequest = ByResource & Readonly<{ permissions: readonly string[] }>;

/** Those that a mask can name; none named is all of them. */
const CHANGEABLE: readonly string[] = ['bindings', 'etag', 'version'];

export function iamMethods({ policies, resource, caller }: IamPorts) {
  return {
    getIamPolicy: ({ resource: name }: ByResource): Policy => policies.get(resource(name).holder),

    setIamPolicy: ({ resource: name, policy, updateMask }: SetRequest): Policy => {
      const { holder } = resource(name);
      const unknown = updateMask?.paths.find((path) => !CHANGEABLE.includes(path));
      if (unknown !== undefined)
        throw invalidArgument(`Invalid update_mask: policies have no field ${unknown} to change.`);
      const given = policy ?? {};
      if (caller() !== undefined && given.bindings?.some(({ condition }) => condition)) {
        throw unimplemented(
          'conditions of bindings are not evaluated by this server, which enforces policies',
        );
      }
      return policies.set(holder, given);
    },

    /** Nothing for a resource that is not there, which is no error (google/iam/v1/iam_policy.proto). */
    testIamPermissions: ({
      resource: name,
      permissions,
    }: TestRequest): { permissions: readonly string[] } => {
      const found = findResource(() => resource(name));
      if (found === undefined) return { permissions: [] };
      const known: readonly string[] = PERMISSIONS[found.collection];
      for (const permission of permissions) {
        if (!known.includes(permission)) {
          throw invalidArgument(`Permission ${permission} is not valid for this resource.`);
        }
      }
      const member = caller();
      if (member === undefined) return { permissions };
      const policy = policies.get(found.holder);
      return { permissions: permissions.filter((each) => isPermitted(policy, member, each)) };
    },
  };
}

function findResource<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof StatusError && error.code === status.NOT_FOUND) return undefined;
    throw error;
  }
}
