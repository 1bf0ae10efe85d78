/**
 * The property of the inbox over a number of random schedules, in threads.
 */
import { asThread, type Runs, search, type Searched, searchInThreads } from '../engine/search.ts';
import { playInbox } from './inbox-play.ts';
import { schedules } from './inbox-schedule.ts';

export const proveInbox = (runs: Runs): Promise<Searched> => searchInThreads(import.meta.url, runs);

await asThread((runs) =>
  search(
    schedules,
    async (schedule, died) =>
      (await playInbox(schedule, died)).map((text) => ({ invariant: 'exactly once', text })),
    runs,
  ),
);
