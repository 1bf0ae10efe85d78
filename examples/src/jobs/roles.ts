/**
 * Raster acquisition as a chain of three roles: ingest → indicator → export. Each handler's writes, the end of its job and
 * the next job of the chain are one commit, so that no step is lost and none has two effects, whichever process dies.
 *
 * In production each role is a deployment of its own, with the lease and the account that fit it:
 *
 *   npx pubsub-guarantees jobs work examples/src/jobs/roles.ts --concurrency 4
 */
import { complete, type Job, type JobHandler, type RoleOptions } from 'pubsub-guarantees/jobs';
import type { PostgresTransaction } from 'pubsub-guarantees/jobs/postgres';
import { acquire, meanVegetation, type Raster } from './raster.ts';

/** By custom: a person waits for it, the calendar asks for it, and a backfill has time. */
export const PRIORITY = { console: 8, scheduled: 5, backfill: 2 } as const;

export const TABLES = `
  create schema if not exists acquisition;
  create table if not exists acquisition.scene (scene integer primary key, raster jsonb not null, runs integer not null);
  create table if not exists acquisition.indicator (scene integer primary key, vegetation float8 not null);
  create table if not exists acquisition.export (place integer generated always as identity, scene integer not null, text text not null)`;

type Handler = JobHandler<PostgresTransaction>;

/** A reference and no data: the raster is in the caller's own table. */
const sceneOf = ({ payload }: Job): number => (payload as Readonly<{ scene: number }>).scene;

/** No key: it is enqueued in the commit that ends this job, and so once. A chain keeps the priority that it began with. */
const next = (role: string, kind: string, job: Job) =>
  complete({ enqueue: [{ role, kind, payload: { scene: sceneOf(job) }, priority: job.priority }] });

const scene: Handler = async (job, { signal, transaction }) => {
  const raster = await acquire(sceneOf(job), job.attempt, signal);
  // Late, because an open transaction holds back vacuum.
  const tx = await transaction();
  await tx.query(
    `insert into acquisition.scene values ($1, $2, $3)
     on conflict (scene) do update set raster = excluded.raster, runs = excluded.runs`,
    [sceneOf(job), JSON.stringify(raster), job.attempt],
  );
  return next('indicator', 'vegetation', job);
};

const vegetation: Handler = async (job, { transaction }) => {
  const tx = await transaction();
  const { rows } = await tx.query('select raster from acquisition.scene where scene = $1', [sceneOf(job)]);
  const mean = meanVegetation(rows[0]?.['raster'] as Raster);
  await tx.query(
    `insert into acquisition.indicator values ($1, $2)
     on conflict (scene) do update set vegetation = excluded.vegetation`,
    [sceneOf(job), mean],
  );
  return next('export', 'sheet', job);
};

const sheet: Handler = async (job, { transaction }) => {
  const tx = await transaction();
  const { rows } = await tx.query('select vegetation from acquisition.indicator where scene = $1', [
    sceneOf(job),
  ]);
  const text = `scene ${sceneOf(job)}: vegetation ${Number(rows[0]?.['vegetation']).toFixed(2)}`;
  await tx.query('insert into acquisition.export (scene, text) values ($1, $2)', [sceneOf(job), text]);
  return complete({});
};

/** The longest acquisition takes half an hour; its lease is short all the same, because it is renewed. */
export const roles: Readonly<Record<string, RoleOptions<PostgresTransaction>>> = {
  ingest: { lease: '30s', runTimeout: '45m', retry: { min: '100ms', max: '10m' }, handle: { scene } },
  indicator: { runTimeout: '10m', handle: { vegetation } },
  export: { runTimeout: '10m', handle: { sheet } },
};
