/**
 * What is deployed: the folder that Google's builders are given, besides what esbuild and the lock file say. Nothing
 * in it is run while it is built: `gcp-build` is empty, so that no script needs a development dependency there.
 */

/** Both runtimes of Google's that the code is tested on. An open range would let a builder take any newer one. */
const ENGINES = { node: '^22.0.0 || ^24.0.0' };

/** node_modules of a local trial must not be uploaded: the builder installs its own. */
const GCLOUD_IGNORE = '.git\n.gitignore\nnode_modules/\n*.log\n';

/**
 * App Engine standard. No `handlers`: `secure: always` would answer the queue's calls with a redirect, which it does
 * not follow, and what the callers have to prove is checked by the republisher itself.
 */
const APP_YAML = `# The republisher on App Engine standard. On Cloud Run this file is not read.
# Add env_variables at the end before deploying (GOOGLE_CLOUD_PROJECT is set by App Engine):
#   env_variables:
#     ALLOWED_TOPICS: …
#     DEAD_LETTER_TOPIC: …
#     DELAY_QUEUE: …
#     TASKS_LOCATION: …
runtime: nodejs22
service: republisher
entrypoint: node index.js
instance_class: F1
inbound_services:
  - warmup
automatic_scaling:
  min_instances: 0
  max_instances: 10
  max_concurrent_requests: 80
`;

export type Deployable = Readonly<{
  /** Of the folder, the archive and the generated package. */
  name: string;
  /** The workspace that is packed, a folder under the root. */
  workspace: string;
  /** Relative to the workspace. It becomes `main.js`, which `index.js` reads once it has looked at the version of Node. */
  entry: string;
  engines: Readonly<Record<string, string>>;
  /** How plain Cloud Run, App Engine without an entrypoint, and a trial on a laptop start it. */
  start: string;
  /** Files that are there as they stand here. */
  files: Readonly<Record<string, string>>;
}>;

export const DEPLOYABLES: readonly Deployable[] = [
  {
    name: 'functions',
    workspace: 'functions',
    entry: 'src/main.ts',
    engines: ENGINES,
    // Which function it serves is FUNCTION_TARGET, that the platform sets from the entry point.
    start: 'functions-framework',
    files: { '.gcloudignore': GCLOUD_IGNORE },
  },
  {
    name: 'republisher',
    workspace: 'appengine',
    entry: 'src/main.ts',
    engines: ENGINES,
    start: 'node index.js',
    files: { '.gcloudignore': GCLOUD_IGNORE, 'app.yaml': APP_YAML },
  },
];
