import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { defaultQueueConfig, queueToMessage } from './queue-config.ts';
import { queueFilter } from './queue-filter.ts';

const config = { ...defaultQueueConfig('projects/p/locations/l/queues/Mail'), routingOverride: undefined };
const queue = queueToMessage(config, true, Date.parse('2027-01-02T00:00:00Z'));
const matches = (filter: string): boolean => queueFilter(filter)(queue);

test('compares text without regard to case, in part with a colon and whole with an equals sign', () => {
  for (const yes of [
    '',
    'state: PAUSED',
    'state=paused',
    'name:mail',
    'name:"queues/M"',
    'state != RUNNING',
  ]) {
    assert.ok(matches(yes), yes);
  }
  for (const no of ['state: RUNNING', 'name = Mail', 'name: other', 'state != PAUSED'])
    assert.ok(!matches(no), no);
});

test('compares numbers, durations and times by their size', () => {
  for (const yes of [
    'rate_limits.max_dispatches_per_second >= 500',
    'rateLimits.maxBurstSize<200',
    'retry_config.min_backoff = "0.1s"',
    'retry_config.max_backoff > 90s',
    'purge_time > "2027-01-01T00:00:00Z"',
  ]) {
    assert.ok(matches(yes), yes);
  }
  assert.ok(!matches('rate_limits.max_dispatches_per_second < 60'));
  assert.ok(!matches('purge_time < 2027-01-01T00:00:00Z'));
});

test('all conditions must hold, those that are negated must not', () => {
  assert.ok(matches('state: PAUSED AND name: mail'));
  assert.ok(matches('state: PAUSED  NOT name: other -state:RUNNING '));
  assert.ok(!matches('state: PAUSED AND NOT name: mail'));
});

test('an asterisk asks whether a field is set', () => {
  assert.ok(matches('purge_time: *'));
  assert.ok(!matches('app_engine_routing_override: *'));
});

test('refuses what is no condition on a queue', () => {
  const code = (filter: string): unknown => {
    try {
      queueFilter(filter);
      return 'accepted';
    } catch (error) {
      return (error as { code: unknown }).code;
    }
  };
  for (const wrong of [
    'colour = red',
    'state',
    'AND state: PAUSED',
    'state: PAUSED nonsense',
    'rate_limits.max_burst_size > many',
    'rate_limits = 5',
    'name.x: y',
    'retry_config.min_backoff = 5',
  ]) {
    assert.equal(code(wrong), status.INVALID_ARGUMENT, wrong);
  }
  assert.equal(code('state: PAUSED OR name: x'), status.UNIMPLEMENTED);
  assert.equal(code('(state: PAUSED)'), status.UNIMPLEMENTED);
});
