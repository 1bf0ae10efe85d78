/** The name, unit and meaning of every metric of the library. docs/reference.md says what to do about each. */

type Definition = Readonly<{ name: string; unit: string; description: string }>;

export const COUNTERS = {
  outcomes: counter('outcomes', '{outcome}', 'Outcomes that a stage handed outward'),
  faults: counter(
    'faults',
    '{failure}',
    'Failures that are not the message’s own: of its target, the deployment or a store',
  ),
  leasesLost: counter('leases.lost', '{lease}', 'Leases lost while a handler ran under them'),
  recoveries: counter('recoveries', '{recovery}', 'Take-overs of work whose owner had died'),
  conflicts: counter('conflicts', '{message}', 'Messages under an identity that was used with other content'),
  unrecognisedRecords: counter(
    'unrecognised_records',
    '{record}',
    'Records in the claim store that are not the library’s',
  ),
  possibleDuplicates: counter('possible_duplicates', '{message}', 'Messages whose work may be done twice'),
  storeUnavailable: counter(
    'store.unavailable',
    '{call}',
    'Calls of the claim store without a known outcome',
  ),
  suspiciousAttributes: counter(
    'attributes.suspicious',
    '{attribute}',
    'Attributes that look like those of the wire contract and are not',
  ),
  rescheduled: counter(
    'retries.rescheduled',
    '{message}',
    'Messages that come back after a pause, without a delivery attempt',
  ),
  memoryRefusals: counter(
    'memory.refusals',
    '{request}',
    'Requests and payloads that were refused because too many bytes are in flight',
  ),
  hops: counter('hops', '{task}', 'Tasks on the way to a due time that one task cannot reach'),
  schedules: counter(
    'schedules',
    '{change}',
    'Changes of entries in the schedule ledger, by what became of them',
  ),
  gaps: counter('gaps', '{gap}', 'Streams seen waiting for a number that has not come'),
  nextFailures: counter(
    'next_message.failures',
    '{failure}',
    'Failures of the next message of a stream, which waits',
  ),
  poison: counter(
    'poison',
    '{message}',
    'Messages that failed for good: their stream is blocked, or goes on without them',
  ),
  unknownStale: counter(
    'stale.unknown',
    '{message}',
    'Messages acknowledged as stale although their content is not remembered',
  ),
  gapRepairs: counter('gaps.repaired', '{message}', 'Missing numbers that were published again'),
  gapSkips: counter('gaps.skipped', '{gap}', 'Gaps behind which a stream went on'),
  outboxPublished: counter('outbox.published', '{message}', 'Rows of the outbox that were published'),
  outboxFailures: counter(
    'outbox.failures',
    '{failure}',
    'Failures to publish a row of the outbox, each time that it is tried',
  ),
  jobsEnqueued: counter('jobs.enqueued', '{job}', 'Jobs that a program enqueued, by what became of them'),
  jobOutcomes: counter('jobs.outcomes', '{run}', 'Ends of runs, by what became of their jobs'),
  jobsRescued: counter('jobs.rescued', '{job}', 'Jobs whose run ended with its process or its lease'),
  sagasStarted: counter('sagas.started', '{saga}', 'Instances of sagas that were started'),
  sagasEnded: counter('sagas.ended', '{saga}', 'Instances of sagas that ended, by how they did'),
  sagasParked: counter('sagas.parked', '{saga}', 'Instances of sagas that began to wait for an operator'),
  sagaCommands: counter(
    'sagas.commands',
    '{command}',
    'Commands that orchestrators sent to steps, the first time or again',
  ),
} satisfies Readonly<Record<string, Definition>>;

export const HISTOGRAMS = {
  /** https://opentelemetry.io/docs/specs/semconv/messaging/messaging-metrics/ */
  process: {
    name: 'messaging.process.duration',
    unit: 's',
    description: 'Duration of processing operation.',
  },
  store: histogram('claim_store.duration', 'Time that a call of the claim store took'),
  wait: histogram('claim.wait.duration', 'Time that a delivery waited for another of the same message'),
  handler: histogram('handler.duration', 'Time that a handler took under its claim'),
  outboxLag: histogram('outbox.lag', 'From the commit of a row of the outbox to its publish'),
  jobPickUp: histogram('jobs.pick_up.duration', 'From when a job was ready to its claim'),
  jobRun: histogram('jobs.run.duration', 'Time that a run of a job took'),
  lateness: histogram('lateness', 'From the due time that was asked for to the publish'),
} satisfies Readonly<Record<string, Definition>>;

export const GAUGES = {
  pendingSchedules: counter(
    'schedules.pending',
    '{entry}',
    'Entries of the ledger that wait for their due time',
  ),
  blockedStreams: counter('streams.blocked', '{stream}', 'Streams that are blocked at poison'),
  waitingStreams: counter('streams.waiting', '{stream}', 'Streams that wait for a number that has not come'),
  heldMessages: counter(
    'messages.held',
    '{message}',
    'Messages that the oldest streams hold which wait or are blocked',
  ),
  oldestGap: counter('gaps.age', 's', 'How long the oldest of them has waited'),
  blockedOutboxStreams: counter(
    'outbox.streams.blocked',
    '{stream}',
    'Streams of the outbox that are blocked at a row that can never be published',
  ),
  oldestPending: counter(
    'outbox.pending.age',
    's',
    'How long the oldest row had been pending when a pass over the outbox found it',
  ),
  jobBacklog: counter('jobs.backlog', '{job}', 'Jobs that are ready or due'),
  meanJobBacklog: counter('jobs.backlog.mean', '{job}', 'The mean of the last hour'),
  jobPickUpP95: counter(
    'jobs.pick_up.percentile',
    's',
    'The 95th percentile of the last hour’s waits of ready jobs for their claim; 0 where none ran',
  ),
  deadJobs: counter('jobs.dead', '{job}', 'Jobs that are not run again until an operator relaunches them'),
  openSagas: counter('sagas.open.age', 's', 'How long ago the oldest instance that is open was started'),
} satisfies Readonly<Record<string, Definition>>;

function counter(name: string, unit: string, description: string): Definition {
  return { name: `pubsub_guarantees.${name}`, unit, description };
}

function histogram(name: string, description: string): Definition {
  return { name: `pubsub_guarantees.${name}`, unit: 's', description };
}
