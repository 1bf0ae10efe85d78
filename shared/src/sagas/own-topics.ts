/**
 * Names of topics that travel in messages of sagas are full: a short one would be resolved by the process that receives
 * it, in that process's project.
 */
import { refused } from '../errors.ts';
import { isFullTopicName } from '../publish/topic-name.ts';

/** Where the project comes from that a topic given by its ID alone is in. */
export type OwnProject = Readonly<{
  projectId?: string | undefined;
  store: Readonly<{ project?(): string | undefined }>;
}>;

/** Throws ConfigError `INVALID_OPTION` for a name that is none, and for an ID where no project is known. */
export function ownTopic(path: string, topic: string, { projectId, store }: OwnProject): string {
  const project = projectId ?? store.project?.();
  const full = fullIn(topic, project);
  if (full !== undefined) return full;
  const accepted =
    project === undefined
      ? 'projects/PROJECT/topics/ID, or an ID together with projectId, because the store does not know its project yet'
      : 'an ID, or projects/PROJECT/topics/ID';
  throw refused(path, topic, accepted);
}

/** Undefined for what is no name of a topic, and for an ID without a project. */
export function fullIn(topic: string, project: string | undefined): string | undefined {
  const full = topic.includes('/') || project === undefined ? topic : `projects/${project}/topics/${topic}`;
  return isFullTopicName(full) ? full : undefined;
}
