/**
 * Draining when the platform ends the process: SIGTERM closes every receiver, and when all are closed the process ends as
 * it would have at once. What is killed before that comes again, as after any crash.
 */

type Close = () => Promise<void>;

/** One listener for all of a process's receivers: Node warns from the eleventh listener on. */
const receivers = new Set<Close>();
let isDraining = false;

/** `close` must not reject. The result takes it back. */
export function drainOnSigterm(close: Close): () => void {
  // First of all, so that it sees the application's own listeners, those too that listen once.
  if (receivers.size === 0 && !isDraining) process.prependListener('SIGTERM', onSigterm);
  receivers.add(close);
  return () => {
    receivers.delete(close);
    if (receivers.size === 0 && !isDraining) process.off('SIGTERM', onSigterm);
  };
}

function onSigterm(): void {
  // A second signal must not cut the drain short; SIGKILL does that.
  if (isDraining) return;
  isDraining = true;
  const isAlone = process.listenerCount('SIGTERM') === 1;
  void Promise.all([...receivers].map((close) => close())).then(() => {
    isDraining = false;
    process.off('SIGTERM', onSigterm);
    // A listener of the application's own decides by itself when the process ends.
    if (isAlone) process.kill(process.pid, 'SIGTERM');
  });
}
