/** The Postgres of `npm start -- --jobs`: it has the tables of jobs, and it ends with the process that started it. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startJobsDatabase } from './jobs-database.ts';
import { postgresBinaries } from './postgres-server.ts';
import { takesQueries } from './start-up.ts';

const COMMAND = fileURLToPath(new URL('../../../shared/bin/pubsub-guarantees.js', import.meta.url));
const MODULE = new URL('./jobs-database.ts', import.meta.url).href;

const addressOf = (text: string) => {
  const { hostname: host, port, username: user, pathname } = new URL(text);
  return { host, port: Number(port), user, database: pathname.slice(1) };
};

if (postgresBinaries().length === 0) {
  test('the Postgres of the local stack', { skip: 'no postgres on this machine' }, () => {});
} else {
  test('the tables of jobs are there, and nothing is left when it is closed', async () => {
    const { url, close } = await startJobsDatabase();
    const address = addressOf(url);
    const out = await new Promise<string>((resolve) => {
      const env = { ...process.env, DATABASE_URL: url };
      execFile(process.execPath, [COMMAND, 'jobs', 'list'], { env }, (_error, stdout, stderr) =>
        resolve(`${stdout}${stderr}`),
      );
    });
    assert.equal(out, 'no jobs\n');
    assert.equal(await takesQueries(address), true);
    await close();
    assert.equal(await takesQueries(address), false);
  });

  test('it ends when the process that started it is killed', async (t) => {
    const program = `const { startJobsDatabase } = await import(${JSON.stringify(MODULE)});
      console.log((await startJobsDatabase()).url);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const address = addressOf(line.toString().trim());
    assert.equal(await takesQueries(address), true);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    while (await takesQueries(address)) await new Promise((resolve) => setTimeout(resolve, 50));
  });
}
