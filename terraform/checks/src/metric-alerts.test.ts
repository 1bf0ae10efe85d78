/** Alerts on metrics: each opens for what it is about, and for nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPlan } from './plans.ts';
import { opens, type Series } from './series.ts';

const alerts = (await readPlan('complete')).resources.filter(
  ({ type, values }) =>
    type === 'google_monitoring_alert_policy' && !JSON.stringify(values).includes('condition_matched_log'),
);

/** The alerts that open, by their own names. */
const opened = (...series: Series[]): readonly string[] =>
  alerts
    .filter(({ values }) => opens(values, series))
    .map(({ address }) =>
      address.replace(/^module\.monitoring\.google_monitoring_alert_policy\./, '').replaceAll('"', ''),
    );

const minutes = (count: number, value: number): readonly number[] =>
  Array.from({ length: count }, () => value);

const queue = (metric: string, points: Series['points'], code = '', id = 'delay-a'): Series => ({
  metric: `cloudtasks.googleapis.com/queue/${metric}`,
  resource: 'cloud_tasks_queue',
  labels: {
    'resource.labels.queue_id': id,
    'resource.labels.location': 'europe-west1',
    'metric.labels.response_code': code,
  },
  points,
});
const subscription = (metric: string, id: string, points: Series['points']): Series => ({
  metric: `pubsub.googleapis.com/subscription/${metric}`,
  resource: 'pubsub_subscription',
  labels: { 'resource.labels.subscription_id': id },
  points,
});
const job = (points: Series['points'], severity = 'INFO'): Series => ({
  metric: 'logging.googleapis.com/log_entry_count',
  resource: 'cloud_scheduler_job',
  labels: { 'resource.labels.job_id': 'reminders-sweep', 'metric.labels.severity': severity },
  points,
});

for (const code of ['503', '500', '403', '404', '429', 'unavailable', 'DEADLINE_EXCEEDED']) {
  test(`a republisher that answers ${code} for five minutes raises an alert, and for two it raises none`, () => {
    const fails = (count: number): Series => queue('task_attempt_count', minutes(count, 2), code);
    assert.deepEqual(opened(fails(5)), ['attempts[delay-a]']);
    assert.deepEqual(opened(fails(2)), []);
    assert.deepEqual(opened(queue('task_attempt_count', minutes(9, 2), code, 'other')), []);
  });
}

test('a republisher that answers well opens no alert, however Cloud Tasks writes that', () => {
  for (const code of ['200', '204', 'ok', 'OK'])
    assert.deepEqual(opened(queue('task_attempt_count', minutes(9, 500), code)), []);
});

test('a queue that grows beyond what is expected, and one that is late, raise an alert', () => {
  assert.deepEqual(opened(queue('depth', minutes(5, 100_001))), ['depth[delay-a]']);
  assert.deepEqual(opened(queue('depth', minutes(5, 99_999))), []);
  assert.deepEqual(opened(queue('task_attempt_delays', minutes(5, 60_001))), ['lateness[delay-a]']);
  assert.deepEqual(opened(queue('task_attempt_delays', minutes(5, 900))), []);
});

test('a job that stops running raises an alert after fifteen minutes, and one that fails is not missed', () => {
  const stopped = (ago: number): Series => job([...minutes(30, 1), ...minutes(ago, 0).map(() => undefined)]);
  assert.deepEqual(opened(stopped(15)), ['sweep_absent[reminders-sweep]']);
  assert.deepEqual(opened(stopped(14)), []);
  assert.deepEqual(
    opened(job(minutes(60, 1)), job([1, ...minutes(30, 0).map(() => undefined)], 'ERROR')),
    [],
  );
});

test('an old backlog and dead letters each raise an alert of their own', () => {
  const old = subscription('oldest_unacked_message_age', 'reminders-push', minutes(2, 601));
  assert.deepEqual(opened(old), ['backlog[reminders]']);
  const dead = subscription('num_undelivered_messages', 'republisher-dead-letters', [1]);
  assert.deepEqual(opened(dead), ['dead_letters[republisher]']);
});

test('every alert on a metric has a case here', () => {
  const kinds = new Set(alerts.map(({ address }) => /alert_policy\.(\w+)\[/.exec(address)?.[1] ?? address));
  assert.deepEqual(
    kinds,
    new Set(['attempts', 'backlog', 'dead_letters', 'depth', 'lateness', 'sweep_absent']),
  );
});
