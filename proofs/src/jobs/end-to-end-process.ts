/**
 * One part of the way from a message to its effect, as a process that works until it is killed. Started by
 * end-to-end-kills.test.ts; it loads, says so, works from the first message of its parent on, and ends with its parent.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { flushCompileCache } from 'node:module';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { enqueueing } from '../../../shared/src/jobs/enqueueing.ts';
import { jobs } from '../../../shared/src/jobs/jobs.ts';
import type { Job } from '../../../shared/src/jobs/job.ts';
import { complete, type JobContext } from '../../../shared/src/jobs/outcome.ts';
import { jobOutbox, postgresJobs, type PostgresTransaction } from '../../../shared/src/jobs/postgres.ts';
import { worker } from '../../../shared/src/jobs/worker.ts';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { postgresOutbox } from '../../../shared/src/outbox/postgres.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import { httpEndpoint } from '../../../shared/src/receive/http-endpoint.ts';

export const PARTS = ['intake', 'worker', 'relay', 'subscriber'] as const;
export type Part = (typeof PARTS)[number];

export type PartTask = Readonly<{
  part: Part;
  postgres: pg.PoolConfig;
  pubsub: string;
  firestore: string;
  leaseMs: number;
}>;

/** What a part says when it works. */
export type Begun = Readonly<{ pushEndpoint?: string }>;

export const PROJECT = 'demo-project';

/** Loaded by the parts that need them: Google's clients take most of the start of a process. */
async function pubsubAt(apiEndpoint: string): Promise<PubSub> {
  const { PubSub: Client } = await import('@google-cloud/pubsub');
  return new Client({ apiEndpoint, projectId: PROJECT });
}

/** What loads a part, and answers what begins its work. The parts say nothing: what they did is in the databases. */
const PARTS_AT_WORK: Readonly<Record<Part, (task: PartTask) => Promise<() => Promise<Begun>>>> = {
  /** A push becomes a job, and is answered once that is committed. */
  async intake({ postgres }) {
    const queue = jobs(postgresJobs(poolOf(postgres), { log: silent }));
    const handler = enqueueing(queue, (message) => ({
      role: 'r',
      kind: 'answer',
      payload: { text: message.data.toString() },
      maxAttempts: 1_000,
    }));
    const endpoint = httpEndpoint(handler, { consumer: 'intake', handlerTimeout: '8s', log: silent });
    const server = createServer((request, response) => {
      void bodyOf(request)
        .then((rawBody) => endpoint({ method: request.method ?? '', headers: request.headers, rawBody }))
        .then(
          ({ status, body }) => response.writeHead(status).end(body),
          // A request that broke off: its message comes again.
          () => response.destroy(),
        );
    });
    return async () => {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      return { pushEndpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
    };
  },

  /** What the handler writes, the end of its job, and the row of its message are one commit. */
  async worker({ postgres, leaseMs }) {
    const pool = poolOf(postgres);
    const outbox = jobOutbox(postgresOutbox(pool, { projectId: PROJECT }));
    const listen = () => new pg.Client(postgres);
    const store = postgresJobs(pool, { outbox, rescueAfterStart: '0s', log: silent, listen });
    const roles = {
      r: {
        lease: `${leaseMs}ms`,
        runTimeout: '1m',
        retry: { min: '50ms', max: '500ms' },
        handle: {
          async answer({ id, payload }: Job, { transaction }: JobContext<PostgresTransaction>) {
            await pause(Math.random() * 300);
            await (await transaction()).query('insert into public.worked (job_id) values ($1)', [id]);
            const { text } = payload as Readonly<{ text: string }>;
            return complete({ publish: [{ topic: 'results', data: Buffer.from(text), attributes: {} }] });
          },
        },
      },
    } as const;
    return async () => {
      worker(store, roles, { concurrency: 5, poll: '100ms', log: silent });
      return {};
    };
  },

  async relay({ postgres, pubsub }) {
    const { pubsubPublisher } = await import('../../../shared/src/publish/pubsub.ts');
    const publisher = pubsubPublisher(await pubsubAt(pubsub), { publishTimeout: '2s' });
    const rows = postgresOutbox(poolOf(postgres), { projectId: PROJECT });
    const options = { lease: '3s', publishTimeout: '2500ms', interval: '100ms', log: silent } as const;
    const relayed = relay(rows, publisher, options);
    return async () => {
      void relayed.run(new AbortController().signal);
      return {};
    };
  },

  /** The effect is a document of its own for each run that commits: a second run would be a second document. */
  async subscriber({ pubsub, firestore: address, leaseMs }) {
    const [{ Firestore }, { firestoreInbox }, { inbox }, { receive }] = await Promise.all([
      import('@google-cloud/firestore'),
      import('../../../shared/src/dedup/firestore.ts'),
      import('../../../shared/src/dedup/inbox.ts'),
      import('../../../shared/src/receive/pubsub.ts'),
    ]);
    const [host = '', port] = address.split(':');
    const firestore = new Firestore({ projectId: PROJECT, host, port: Number(port), ssl: false });
    const effectOnce = inbox(firestoreInbox(firestore, { callTimeout: '2s' }), {
      lease: `${leaseMs}ms`,
      waitBudget: '2s',
      minimumHandlerTime: '1s',
    });
    const handler = effectOnce(async (message, { transaction }) => {
      await pause(Math.random() * 100);
      transaction.create(firestore.collection('effects').doc(), { text: message.data.toString() });
      return ack();
    });
    const client = await pubsubAt(pubsub);
    return async () => {
      const options = { consumer: 'results', concurrency: 8, handlerTimeout: '8s', log: silent } as const;
      receive(client.subscription('results'), handler, options);
      return {};
    };
  },
};

function poolOf(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({ ...config, max: 12 });
  pool.on('error', () => {});
  return pool;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

// The test imports the types above, and is no process of a part.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('disconnect', () => process.exit());
  const task = JSON.parse(process.argv[2] ?? '') as PartTask;
  const begin = await PARTS_AT_WORK[task.part](task);
  process.once('message', () => {
    void begin().then((begun) => process.send?.(begun));
  });
  // What was compiled serves those that come after; a killed process would not leave it behind.
  flushCompileCache();
  process.send?.('loaded');
}
