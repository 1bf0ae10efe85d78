/** A real Postgres for a test: that of the local stack's workspace, which the examples and benchmarks use as well. */
export { postgresBinaries, type RunningPostgres, startPostgres } from 'pubsub-guarantees-emulator';
