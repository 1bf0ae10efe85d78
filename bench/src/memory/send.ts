/** All at once, and what is refused for the moment again, as Pub/Sub and Cloud Tasks do. */
import type { ChildProcess } from 'node:child_process';
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/** How often each status was answered; `none`: the connection ended without an answer. */
type Statuses = Readonly<Record<string, number>>;

const ROUNDS = 60;
const PAUSE_MS = 250;
const UP_MS = 30_000;

export async function allAnswered(
  url: string,
  bodies: readonly Buffer[],
  child: ChildProcess,
): Promise<Readonly<{ statuses: Statuses; rounds: number }>> {
  const statuses: Record<string, number> = {};
  for (const limit = performance.now() + UP_MS; performance.now() < limit; await wait(50)) {
    const isUp = await post(url.replace(/\/\w*$/, '/health'), undefined);
    if (isUp !== 'none' || child.exitCode !== null) break;
  }
  let left = bodies;
  let rounds = 0;
  while (left.length > 0 && rounds < ROUNDS && child.exitCode === null && child.signalCode === null) {
    rounds += 1;
    const answers = await Promise.all(left.map(async (body) => ({ body, status: await post(url, body) })));
    for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
    left = answers.filter(({ status }) => !status.startsWith('2')).map(({ body }) => body);
    if (left.length > 0) await wait(PAUSE_MS);
  }
  return { statuses, rounds };
}

const agent = new Agent({ keepAlive: false });

async function post(url: string, body: Buffer | undefined): Promise<string> {
  return new Promise((resolve) => {
    const headers = {
      'content-type': 'application/json',
      'X-AppEngine-QueueName': 'delay-queue',
      ...(body !== undefined && { 'content-length': body.length }),
    };
    const sent = request(url, { method: body === undefined ? 'GET' : 'POST', agent, headers }, (response) => {
      response.resume();
      response.once('close', () => resolve(String(response.statusCode)));
    });
    sent.once('error', () => resolve('none'));
    sent.end(body);
  });
}
