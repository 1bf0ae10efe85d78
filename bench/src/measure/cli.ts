/**
 * `npm run measure -- shared/src/order …` prints a row for each folder (default: every folder of the library), the cycles
 * of files and of folders in the library with the imports that make them, how many names its root exports, its small
 * files that one other imports, and how often comments and documents name no actor. The last line is one JSON object.
 */
import { measure } from './measure.ts';

const measured = await measure(process.argv.slice(2));
for (const { folder, ...figures } of measured.rows) {
  const texts = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
  console.log(`${folder}: ${texts.join(', ')}`);
}
const { files, folders, imports } = measured.cycles;
for (const [what, found] of [
  ['files', files],
  ['folders', folders],
] as const) {
  console.log(`cycles of ${what}: ${found.length}`);
  for (const cycle of found) console.log(`  ${cycle.join(' ')}`);
}
for (const { from, to } of imports) console.log(`    ${from} imports ${to}`);
console.log(`names that the root exports: ${measured.rootNames}`);
console.log(`files under 45 lines that one other imports: ${measured.small.length}`);
for (const path of measured.small) console.log(`  ${path}`);
for (const [where, words] of Object.entries(measured.words)) {
  const texts = Object.entries(words).map(([word, count]) => `${word} ${count}`);
  console.log(`words without an actor in ${where}: ${texts.join(', ')}`);
}
console.log(JSON.stringify(measured));
