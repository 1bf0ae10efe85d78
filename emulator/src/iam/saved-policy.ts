/** Policies in saved state, in Google's JSON form. */
import { accepted, bytes, list, meaningful, optional, record, text, whole } from '../saved-json.ts';
import { checkedBindings, versionOf, type Policy } from './policy.ts';

/** Undefined where none was set. */
export const savePolicy = (policy: Policy | undefined): object | undefined =>
  policy && {
    ...meaningful({
      version: policy.version,
      bindings: policy.bindings.map(({ role, members, condition }) =>
        meaningful({ role, members, condition: condition && meaningful(condition) }),
      ),
    }),
    etag: policy.etag.toString('base64'),
  };

const CONDITION = record({
  expression: text,
  title: optional(text, ''),
  description: optional(text, ''),
  location: optional(text, ''),
});
const BINDING = record({ role: text, members: list(text), condition: optional(CONDITION, null) });

/** A field of a saved resource. */
export const POLICY = optional(
  record({ version: optional(whole(0, 3), 0), bindings: optional(list(BINDING), []), etag: bytes }),
  undefined,
);

/** Throws an error of one line that names the place. */
export function readPolicy(saved: ReturnType<typeof POLICY>, place: string): Policy | undefined {
  if (saved === undefined) return undefined;
  const bindings = accepted(`${place}.iamPolicy`, () => checkedBindings(saved));
  return { version: versionOf(bindings), bindings, etag: saved.etag };
}
