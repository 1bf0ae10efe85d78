/**
 * The command `pubsub-guarantees`: operator commands for streams, for sagas, for jobs, for the outbox, and for erasing. Errors
 * are one line on standard error.
 */
import { type CommandLine, HELP, readCommandLine } from './cli/command-line.ts';
import { runOutbox } from './cli/run-outbox.ts';
import { runStreams } from './cli/run-streams.ts';
import { CommandLineError, type Printed } from './cli/usage.ts';
import { codeOf, textOf } from './errors.ts';

async function run(line: CommandLine): Promise<void> {
  const { object, lines, exitCode = 0 } = await answer(line);
  console.log(line.json ? JSON.stringify(object) : lines.join('\n'));
  process.exitCode = exitCode;
}

/** The clients take most of a second to load, which a wrong command line need not wait for. */
async function answer(line: CommandLine): Promise<Printed> {
  if (line.area === 'cost') {
    const { answerCost } = await import('./cli/cost-command.ts');
    return answerCost(line.question);
  }
  if (line.area === 'erase') {
    const { runErase } = await import('./cli/firestore-erase.ts');
    return runErase(line);
  }
  if (line.area === 'outbox') {
    const { openOutbox } = await import('./cli/firestore-outbox.ts');
    const { store, close } = openOutbox(line);
    return closing(close, () => runOutbox(store, line.command));
  }
  if (line.area === 'sagas') {
    const [{ openSagas }, { runSagas }] = await Promise.all([
      import('./cli/firestore-sagas.ts'),
      import('./cli/run-sagas.ts'),
    ]);
    const { sagas, close } = openSagas(line);
    return closing(close, () => runSagas(sagas, line.command));
  }
  if (line.area === 'jobs') {
    const { command } = line;
    if (command.kind === 'work') {
      const { workJobs } = await import('./cli/work-jobs.ts');
      return workJobs(line, command, console.error);
    }
    const [{ openJobs }, { runJobs }] = await Promise.all([
      import('./cli/postgres-jobs.ts'),
      import('./cli/run-jobs.ts'),
    ]);
    const { close, ...ports } = await openJobs(line);
    return closing(close, () => runJobs(ports, command));
  }
  const { openStreams } = await import('./cli/firestore-streams.ts');
  const { streams, close } = await openStreams(line);
  return closing(close, () => runStreams(streams, line, line.command));
}

/** What failed is not closed: a client that is closed while it still tries throws where nothing catches it. */
async function closing(close: () => Promise<void>, work: () => Promise<Printed>): Promise<Printed> {
  const printed = await work();
  await close();
  return printed;
}

try {
  const line = readCommandLine(process.argv.slice(2), process.env);
  if (line === 'help') console.log(HELP);
  else await run(line);
} catch (error) {
  const text = textOf(error).split('\n')[0] ?? '';
  const isUsage = error instanceof CommandLineError;
  console.error(`error: ${text}${isUsage ? '' : ` (${codeOf(error)})`}`);
  process.exit(isUsage ? 2 : 1);
}
