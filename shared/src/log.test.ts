import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonLog, type JsonLogOptions, type LogFields, withFields } from './log.ts';

function lines(options: JsonLogOptions = {}) {
  const written: unknown[] = [];
  return { log: jsonLog((line) => written.push(JSON.parse(line)), options), written };
}

test('one JSON object a line, with the severities of Cloud Logging', () => {
  const { log, written } = lines();
  log.info('a', { n: 1, absent: undefined });
  log.warn('b');
  log.error('c', { stack_trace: 'Error: x\n    at y' });
  assert.deepEqual(written, [
    { severity: 'INFO', message: 'a', n: 1 },
    { severity: 'WARNING', message: 'b' },
    { severity: 'ERROR', message: 'c', stack_trace: 'Error: x\n    at y' },
  ]);
});

test('what is for debugging is written on request', () => {
  const quiet = lines();
  quiet.log.debug?.('a');
  const loud = lines({ debug: true });
  loud.log.debug?.('a');
  assert.deepEqual([quiet.written, loud.written], [[], [{ severity: 'DEBUG', message: 'a' }]]);
});

test('trace, span and labels go where Cloud Logging looks for them', () => {
  const { log, written } = lines({ projectId: 'p', labels: { consumer: 'orders' } });
  withFields(log, { traceId: 'a1', spanId: 'b2', traceSampled: false }).warn('x', { n: 1 });
  assert.deepEqual(written, [
    {
      severity: 'WARNING',
      message: 'x',
      n: 1,
      'logging.googleapis.com/trace': 'projects/p/traces/a1',
      'logging.googleapis.com/spanId': 'b2',
      'logging.googleapis.com/trace_sampled': false,
      'logging.googleapis.com/labels': { consumer: 'orders' },
    },
  ]);
});

test('a line’s own fields win over those that every line has', () => {
  const { log, written } = lines({ debug: true });
  withFields(log, { a: 1, b: 1 }).debug?.('x', { b: 2 });
  assert.deepEqual(written, [{ severity: 'DEBUG', message: 'x', a: 1, b: 2 }]);
  assert.equal(withFields(lines().log, {}).debug, undefined);
});

test('a line that cannot be written does not throw', () => {
  const log = jsonLog(() => {
    throw new Error('EPIPE');
  });
  log.error('x');
  lines().log.info('x', { big: 1n } as unknown as LogFields);
});
