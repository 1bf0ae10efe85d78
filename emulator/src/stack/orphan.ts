/**
 * npm runs a script in a shell, and passes a signal on to the shell alone: it dies, and the program goes on with
 * no process to stop it. So a program that npm started looks whether its parent is still the one that it began with.
 */

const EVERY_MS = 250;

/** Calls `stop` once when npm's shell is gone. Does nothing in a program that npm did not start. */
export function onOrphaned(stop: () => void): void {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stop();
  }, EVERY_MS);
  timer.unref();
}
