/**
 * What a caller may do by a policy. Only what the stack can know counts: a group has no members here, a custom role no
 * permissions, and a binding with a condition gives nothing, because no condition is evaluated.
 */
import type { Policy } from './policy.ts';
import { permissionsOf } from './roles.ts';

/** `caller` as in `serviceAccount:a@p.iam.gserviceaccount.com`. */
export function isPermitted({ bindings }: Policy, caller: string, permission: string): boolean {
  return bindings.some(
    ({ role, members, condition }) =>
      !condition &&
      permissionsOf(role).includes(permission) &&
      members.some((member) => includesCaller(member, caller)),
  );
}

function includesCaller(member: string, caller: string): boolean {
  if (member === 'allUsers' || member === 'allAuthenticatedUsers') return true;
  const [member_, caller_] = [member.toLowerCase(), caller.toLowerCase()];
  if (member_.startsWith('domain:')) return caller_.endsWith(`@${member_.slice('domain:'.length)}`);
  return member_ === caller_;
}
