/**
 * The republisher as a process. It ends 0 on SIGTERM or SIGINT once what was in flight is answered, and 1 when it
 * cannot start (one line on standard error says why) or cannot stop in time. A task that is cut off is sent again.
 */
import { ConfigError, jsonLog, systemClock } from 'pubsub-guarantees';
import { readConfig } from './config.ts';
import { start } from './start.ts';

/**
 * The platforms give ten seconds or less between SIGTERM and SIGKILL. The second limit begins when the first is over, which
 * cuts off what is in flight (start.ts): a process that got no time meanwhile has the whole of it to answer.
 */
const FINISH_MS = 6_000;
const ANSWER_MS = 2_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = jsonLog((line) => console.log(line), {
    projectId: config.project,
    labels: { consumer: 'republisher' },
  });
  const running = await start(config, systemClock(), log);
  log.info('listening', { port: running.port });
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    const tooLate = (): void => {
      log.error('did not stop in time');
      process.exit(1);
    };
    setTimeout(() => setTimeout(tooLate, ANSWER_MS).unref(), FINISH_MS).unref();
    running.close().catch((error: unknown) => {
      log.error('did not stop cleanly', { error: String(error) });
      process.exitCode = 1;
    });
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

try {
  await main();
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  console.error(
    error instanceof ConfigError ? `cannot start: ${text}` : `cannot start: ${text.split('\n', 1)[0]}`,
  );
  process.exit(1);
}
