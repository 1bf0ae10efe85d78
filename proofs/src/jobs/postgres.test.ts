import { test } from 'node:test';
import { pgbouncerProgram, startPgbouncer } from '../servers/pgbouncer.ts';
import { postgresBinaries, startPostgres } from '../servers/postgres-server.ts';
import { jobsContract } from '../../../shared/src/jobs/contract.ts';
import { openJobs } from './postgres-jobs.ts';

const binaries = postgresBinaries();
if (binaries.length === 0) test('jobs in Postgres', { skip: 'no postgres on this machine' }, () => {});

for (const binary of binaries) {
  jobsContract(`Postgres ${binary.name}`, async () => {
    const server = await startPostgres(binary);
    return openJobs(server.config, server.config, () => server.close());
  });
}

const [first] = binaries;
const program = pgbouncerProgram();
if (first === undefined || program === undefined) {
  test('T29: the contract holds through PgBouncer', {
    skip: 'no postgres or no pgbouncer on this machine',
  }, () => {});
} else {
  jobsContract(`T29: Postgres ${first.name} behind PgBouncer in transaction mode`, async () => {
    const server = await startPostgres(first);
    const pooler = await startPgbouncer(program, server, 2);
    return openJobs(pooler.config, undefined, async () => {
      await pooler.close();
      await server.close();
    });
  });
}
