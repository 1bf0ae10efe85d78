/** Writes the shipped events to standard output: `node --conditions=source examples/src/events/main.ts > examples/events.ndjson`. */
import { generateEvents } from './generate.ts';

process.stdout.write(generateEvents());
