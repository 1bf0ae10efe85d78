/**
 * The property with events of a trigger, over a number of random schedules, in threads.
 */
import { asThread, type Runs, search, type Searched, searchInThreads } from '../engine/search.ts';
import { play, withTrigger } from './play.ts';
import { schedules } from './schedule.ts';

export const proveTold = (runs: Runs): Promise<Searched> => searchInThreads(import.meta.url, runs);

await asThread((runs) => search(schedules, (schedule, died) => play(withTrigger, schedule, died), runs));
