/**
 * A process that outlives the stack for a moment: when that is gone, in whatever way, it ends the Postgres that the stack
 * had started, which would not notice, and removes what it wrote. Started by jobs-database.ts.
 */
import { rmSync } from 'node:fs';

const [pid, directory = ''] = [Number(process.argv[2]), process.argv[3]];
const EVERY_MS = 50;

const isThere = (): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

process.on('disconnect', () => {
  // At once, without a last checkpoint: https://www.postgresql.org/docs/current/server-shutdown.html
  if (isThere()) process.kill(pid, 'SIGQUIT');
  const looking = setInterval(() => {
    if (isThere()) return;
    clearInterval(looking);
    rmSync(directory, { recursive: true, force: true });
  }, EVERY_MS);
});
