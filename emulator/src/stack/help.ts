/** The command's own description, and what it prints when everything is ready. */
import { environmentOf, exportLines } from './environment.ts';
import { DEFAULT_PORT_BASE } from './services.ts';
import type { StackAddresses } from './stack.ts';
import type { ToolkitAddresses } from './toolkit.ts';
import { DEAD_LETTERS, FORWARDING } from './topology.ts';

const COMMON = `
  --port-base N          first of the ports in a row (default ${DEFAULT_PORT_BASE}; 0: any that are free)
  --pubsub-port N, --firestore-port N, --tasks-port N, --control-port N
                         single ports, which win over --port-base
  --load FILE            start from a saved state
  --save FILE            write the state there when it is stopped
  --faults FILE          a plan of faults, in YAML or JSON
  --indexes MODE         composite indexes that Firestore would need: warn (default), enforce or off
  --index-file FILE      a firestore.indexes.json: the indexes that are defined
  --remote-targets       let pushes, tasks and triggers go to addresses that are not this machine's own
  --official             Google's own Pub/Sub and Firestore emulators, where they are installed
  --external             those that PUBSUB_EMULATOR_HOST and FIRESTORE_EMULATOR_HOST name
  --write-env FILE       write the variables there when ready; removed at the end
  --print-env            print the variables and start nothing, for eval
  --json                 one line of JSON when ready, everything else on standard error
  --quiet                nothing but what is printed when ready
  --help, --version

  -- COMMAND …           run the command with the variables set when ready, and end with it, with its exit code`;

export const HELP = `pubsub-guarantees-emulator: Pub/Sub, Firestore and Cloud Tasks on 127.0.0.1, until Ctrl-C.

  --services LIST        of pubsub, firestore, tasks (default: all three)
  --project NAME         default: that of the seed, or demo-project
  --caller MEMBER        enforce policies: all calls are user:EMAIL's or serviceAccount:EMAIL's
  --seed FILE            topics, subscriptions, queues and documents to begin with, in YAML or JSON${COMMON}`;

export const TOOLKIT_HELP = `Starts Pub/Sub, Firestore, Cloud Tasks, the five functions and the republisher on 127.0.0.1, until Ctrl-C.

  --store NAME           where claims are kept: firestore (default) or redis
  --redis-url URL        with --store redis: redis://host:port
  --sagas FILE           a file whose default export is the list of sagas to run (default: those of the example)
  --outbox-trigger       fire a trigger for each row of the outbox, to the function saga
  --jobs                 also a Postgres with the tables of jobs, where one is installed${COMMON}`;

export function summary(addresses: StackAddresses | ToolkitAddresses): string {
  return [
    'ready',
    '',
    ...exportLines(environmentOf(addresses)).map((line) => `  ${line}`),
    '',
    ...('functions' in addresses ? programsOf(addresses) : []),
    `  control     ${addresses.control}/state`,
    '',
    'Ctrl-C stops everything.',
  ].join('\n');
}

const programsOf = ({ functions, republisher }: ToolkitAddresses): readonly string[] => [
  ...FORWARDING.map(
    (name) => `  ${name.padEnd(9)} ${name}-in → ${functions[name]} → ${name}-out (${name}-out-sub)`,
  ),
  `  ${'saga'.padEnd(9)} saga → ${functions.saga} → the topics of its steps`,
  `  what can never be delivered: ${DEAD_LETTERS} (${DEAD_LETTERS}-sub)`,
  `  republisher ${republisher}`,
];
