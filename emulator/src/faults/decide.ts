/**
 * Which calls a rule hits. Pure: the answer depends on the seed, the rule and the number of the call alone, so that a
 * schedule is the same however many processes talk to the stack and whichever of them comes first.
 */
import { createHash } from 'node:crypto';
import type { Rule, Service } from './plan.ts';

/** A call as a rule sees it: the n-th of this method on this resource, counted from 1. */
export type Call = Readonly<{ service: Service; method: string; resource: string; n: number }>;

/** `share`: the first 32 bits of a SHA-256 over all that decides, read as a fraction of 1. */
export function fires(seed: number, index: number, rule: Rule, call: Call): boolean {
  if (rule.nth !== undefined) return rule.nth.includes(call.n);
  if (rule.share === undefined) return true;
  const { service, method, resource, n } = call;
  const text = JSON.stringify([seed, index, service, method, resource, n]);
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32 < rule.share;
}

/**
 * The text as a pattern: each `*` stands for any characters, none included. No regular expression: one with many stars
 * would look for longer than any test waits.
 */
export function wildcard(pattern: string): (resource: string) => boolean {
  const [first = '', ...inner] = pattern.split('*');
  const last = inner.pop();
  if (last === undefined) return (resource) => resource === pattern;
  return (resource) => {
    const end = resource.length - last.length;
    if (!resource.startsWith(first) || !resource.endsWith(last)) return false;
    let at = first.length;
    // The earliest place for each part leaves the most for those behind it.
    for (const part of inner) {
      const found = resource.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}
