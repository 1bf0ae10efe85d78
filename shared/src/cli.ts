/**
 * The command `pubsub-guarantees`: operator commands for ordered streams. Errors are one line on standard error.
 */
import { type CommandLine, CommandLineError, HELP, readCommandLine } from './cli/command-line.ts';
import { runOrders } from './cli/run-orders.ts';
import { codeOf, textOf } from './errors.ts';

async function run(line: CommandLine): Promise<void> {
  // The clients take most of a second to load, which a wrong command line need not wait for.
  const { openOrders } = await import('./cli/firestore-orders.ts');
  const { orders, close } = await openOrders(line);
  try {
    const { object, lines } = await runOrders(orders, line.command);
    console.log(line.json ? JSON.stringify(object) : lines.join('\n'));
  } finally {
    await close();
  }
}

try {
  const line = readCommandLine(process.argv.slice(2), process.env);
  if (line === 'help') console.log(HELP);
  else await run(line);
} catch (error) {
  const text = textOf(error).split('\n')[0] ?? '';
  const isUsage = error instanceof CommandLineError;
  console.error(`error: ${text}${isUsage ? '' : ` (${codeOf(error)})`}`);
  process.exitCode = isUsage ? 2 : 1;
}
