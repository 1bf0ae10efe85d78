/**
 * Later: how late a delayed message is beside a bare task, how many are scheduled a second, and what a task costs while
 * many are pending. All on the local stack.
 */
import { latenessOverBare } from './lateness.ts';
import { pendingCost } from './pending.ts';
import { scheduleSpeed } from './schedule.ts';

export async function later(print: (line: string) => void): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  print('scheduling:');
  const schedule = await scheduleSpeed(print);
  print('');
  print('pending tasks:');
  const pending = await pendingCost(print);
  print('');
  print('lateness:');
  const lateness = await latenessOverBare(print);
  return { schedule, pending, lateness };
}
