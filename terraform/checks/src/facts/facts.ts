/**
 * What a deployment comes to, in words that do not depend on the way it is made: so a plan of Terraform's and the
 * commands of `deploy/gcloud.sh` can be laid side by side. One fact a thing: its name, and what is said of it.
 */
import type { JsonObject } from '../module.ts';

export type Fact = readonly [name: string, said: Readonly<Record<string, string>>];
export type Facts = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** Resources of one type, by their planned values. */
export type Reader = (values: JsonObject) => readonly Fact[];

export const environmentText = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted()
    .join(';');

/** A line for each thing that only one of them has, or of which they say different things. */
export function differences(plan: Facts, commands: Facts): readonly string[] {
  const names = [...new Set([...plan.keys(), ...commands.keys()])].toSorted();
  return names.flatMap((name) => {
    const [one, other] = [plan.get(name), commands.get(name)];
    if (one === undefined) return [`only gcloud: ${name}`];
    if (other === undefined) return [`only Terraform: ${name}`];
    return [...new Set([...Object.keys(one), ...Object.keys(other)])]
      .filter((key) => one[key] !== other[key])
      .map(
        (key) =>
          `${name}: ${key} is ${one[key] ?? 'not said'} in Terraform and ${other[key] ?? 'not said'} in gcloud`,
      );
  });
}
