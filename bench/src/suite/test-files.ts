/** Every test file of the repository, found by name in the `src` folder of each workspace. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths from `root`, sorted. */
export function testFiles(root: string): readonly string[] {
  const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    workspaces: readonly string[];
  };
  return workspaces
    .flatMap((workspace) => globSync(`${workspace}/src/**/*.test.ts`, { cwd: root }))
    .toSorted();
}
