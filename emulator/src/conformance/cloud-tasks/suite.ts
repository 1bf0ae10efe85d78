/**
 * Cloud Tasks. There is no emulator of Google's for it: what backs the cases are recordings of the service, the reference
 * of the API and the page of quotas.
 */
import type { Suite } from '../case.ts';
import { createQueueCases, queueLimitCases } from './cases/create-queue.ts';
import { answerCases } from './cases/answers.ts';
import { taskNameCases } from './cases/create-task.ts';
import { dispatchAppEngineCases } from './cases/dispatch-app-engine.ts';
import { dispatchHttpCases } from './cases/dispatch-http.ts';
import { listQueuesCases } from './cases/list-queues.ts';
import { notServedCases } from './cases/not-served.ts';
import { policyCases } from './cases/policies.ts';
import { queueLifeCases } from './cases/queue-life.ts';
import { rateCases } from './cases/rates.ts';
import { readTaskCases } from './cases/read-tasks.ts';
import { restJsonCases } from './cases/rest-json.ts';
import { restCases } from './cases/rest.ts';
import { retryCases } from './cases/retries.ts';
import { runTaskCases } from './cases/run-task.ts';
import { scheduleCases } from './cases/schedule-times.ts';
import { taskLimitCases } from './cases/task-limits.ts';
import { appEngineTargetCases, httpTargetCases } from './cases/task-targets.ts';
import { tokenCases } from './cases/tokens.ts';
import { inFlightCases } from './cases/in-flight.ts';
import { updateQueueCases } from './cases/update-queue.ts';
import { tasksWorld, type TasksWorld } from './world.ts';

export const cloudTasksSuite: Suite<TasksWorld> = {
  service: 'Cloud Tasks',
  embedded: () => tasksWorld(),
  cases: [
    ...createQueueCases,
    ...queueLimitCases,
    ...queueLifeCases,
    ...updateQueueCases,
    ...listQueuesCases,
    ...taskNameCases,
    ...scheduleCases,
    ...taskLimitCases,
    ...httpTargetCases,
    ...appEngineTargetCases,
    ...readTaskCases,
    ...dispatchHttpCases,
    ...answerCases,
    ...dispatchAppEngineCases,
    ...retryCases,
    ...rateCases,
    ...runTaskCases,
    ...inFlightCases,
    ...tokenCases,
    ...restCases,
    ...restJsonCases,
    ...policyCases,
    ...notServedCases,
  ],
};
