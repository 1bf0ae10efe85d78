/**
 * What a policy can be (google/iam/v1/policy.proto): roles with the principals that have them. A policy that is refused is
 * refused as a whole.
 */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import { isRole } from './roles.ts';

/** A logical expression that is kept and given back, and never evaluated here. */
type Condition = Readonly<{
  expression: string;
  title: string;
  description: string;
  location: string;
}>;

export type Binding = Readonly<{
  role: string;
  members: readonly string[];
  condition?: Condition | null;
}>;

/** google.iam.v1.Policy. */
export type Policy = Readonly<{ version: number; bindings: readonly Binding[]; etag: Buffer }>;

/** As a request has it. */
export type GivenPolicy = Readonly<{
  version?: number;
  bindings?: readonly Binding[];
  auditConfigs?: readonly object[];
  etag?: Buffer;
}>;

/** Of all occurrences in a policy: google/iam/v1/policy.proto. */
const MAX_MEMBERS = 1_500;
const VERSIONS: readonly number[] = [0, 1, 3];
const MEMBER =
  /^(?:allUsers|allAuthenticatedUsers|(?:user|serviceAccount|group):[^@\s]+@[^@\s]+|domain:[^@\s]+|deleted:\S+|principal(?:Set)?:\/\/\S+|project(?:Owner|Editor|Viewer):\S+)$/;

/** Throws INVALID_ARGUMENT for what no policy is, and UNIMPLEMENTED for audit logs. */
export function checkedBindings(given: GivenPolicy): readonly Binding[] {
  const { version = 0, bindings = [], auditConfigs = [] } = given;
  if (auditConfigs.length > 0) throw unimplemented('policy.audit_configs is not implemented by this server');
  if (!VERSIONS.includes(version))
    throw invalidArgument(`Invalid policy version: ${version}. It must be 0, 1 or 3.`);
  for (const binding of bindings) checkBinding(binding, version);
  const members = bindings.reduce((sum, each) => sum + each.members.length, 0);
  if (members > MAX_MEMBERS) {
    throw invalidArgument(`The policy has ${members} members, but the maximum allowed is ${MAX_MEMBERS}.`);
  }
  return bindings.map(({ role, members: all, condition }) => ({
    role,
    members: [...all],
    condition: condition ?? null,
  }));
}

function checkBinding({ role, members, condition }: Binding, version: number): void {
  if (!isRole(role)) throw invalidArgument(`Role ${role} is not supported for this resource.`);
  if (members.length === 0) throw invalidArgument(`The binding of ${role} has no members.`);
  for (const member of members) checkMember(member);
  if (condition && version !== 3) {
    throw invalidArgument(`The binding of ${role} has a condition: the policy must have version 3.`);
  }
}

function checkMember(member: string): void {
  if (MEMBER.test(member)) return;
  throw invalidArgument(
    `The member ${member} is of an unknown type. Please set a valid type prefix for the member.`,
  );
}

/** The service shows a version only where there is something to read. */
export const versionOf = (bindings: readonly Binding[]): number =>
  bindings.some(({ condition }) => condition) ? 3 : bindings.length > 0 ? 1 : 0;
