/**
 * `npm run measure -- shared/src/order …` prints a row for each folder (default: every folder of the library), the cycles
 * of files and of folders in the library, and how many names its root exports. The last line is one JSON object.
 */
import { measure } from './measure.ts';

const measured = await measure(process.argv.slice(2));
for (const { folder, ...figures } of measured.rows) {
  const texts = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
  console.log(`${folder}: ${texts.join(', ')}`);
}
for (const [what, found] of Object.entries(measured.cycles)) {
  console.log(`cycles of ${what}: ${found.length}`);
  for (const cycle of found) console.log(`  ${cycle.join(' ')}`);
}
console.log(`names that the root exports: ${measured.rootNames}`);
console.log(JSON.stringify(measured));
