/** The permissions that Cloud Tasks' methods need: https://cloud.google.com/tasks/docs/reference-access-control */
import { status } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';
import { checkCalls, need, type Needs } from '../iam/guard.ts';
import type { IamPorts } from '../iam/methods.ts';

const queues = (verb: string, path = 'name') => [need(`cloudtasks.queues.${verb}`, path)];
const tasks = (verb: string, path = 'name') => [need(`cloudtasks.tasks.${verb}`, path)];

/** By the names of the methods in camel case. A task's permissions are those of its queue. */
const NEEDS: Needs = {
  getQueue: queues('get'),
  updateQueue: queues('update', 'queue.name'),
  deleteQueue: queues('delete'),
  purgeQueue: queues('purge'),
  pauseQueue: queues('pause'),
  resumeQueue: queues('resume'),
  listTasks: tasks('list', 'parent'),
  getTask: tasks('get'),
  createTask: tasks('create', 'parent'),
  deleteTask: tasks('delete'),
  runTask: tasks('run'),
};

/** The queue of a task. */
const policyOwner = (name: string): string => name.replace(/\/tasks\/[^/]*$/, '');

/** In the words of the service: https://github.com/googleapis/repo-automation-bots/issues/5598 */
const lacksPermission = (permission: string, resource: string): StatusError =>
  new StatusError(
    status.PERMISSION_DENIED,
    `The principal (user or service account) lacks IAM permission "${permission}" for the resource "${resource}" (or the resource may not exist).`,
  );

type Method = (request: never) => object;

/** The methods, each refused with PERMISSION_DENIED where the caller has no right to it. */
export function checkedMethods<M extends Readonly<Record<string, Method>>>(iam: IamPorts, methods: M): M {
  const check = checkCalls({ ...iam, needs: NEEDS, owner: policyOwner, refusal: lacksPermission });
  const checked = Object.entries(methods).map(([name, method]) => [
    name,
    (request: never) => {
      const refused = check(name, request);
      if (refused !== undefined) throw refused;
      return method(request);
    },
  ]);
  return Object.fromEntries(checked) as M;
}
