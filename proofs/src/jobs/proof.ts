/**
 * The property over a number of random schedules, in threads.
 */
import { asThread, type Runs, search, type Searched, searchInThreads } from '../engine/search.ts';
import { asBuilt, play } from './play.ts';
import { schedules } from './schedule.ts';

export const prove = (runs: Runs): Promise<Searched> => searchInThreads(import.meta.url, runs);

await asThread((runs) => search(schedules, (schedule, died) => play(asBuilt, schedule, died), runs));
