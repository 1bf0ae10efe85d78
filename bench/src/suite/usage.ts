/** Loaded before a test file: writes what its process and the children that it waited for took of the processors. */
import { readFileSync, writeFileSync } from 'node:fs';

/** The path of the file to write to. */
export const USAGE = 'TEST_SUITE_USAGE';
/** Kernel ticks a second: `USER_HZ`, 100 on every Linux that Node runs on. */
const TICKS = 100;

const path = process.env[USAGE];
// The children of a test are not test files.
delete process.env[USAGE];

if (path !== undefined) process.on('exit', () => writeFileSync(path, String(cpuSeconds())));

function cpuSeconds(): number {
  try {
    // After the name in brackets: utime, stime, cutime and cstime are fields 14 to 17 of proc(5).
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }
}
