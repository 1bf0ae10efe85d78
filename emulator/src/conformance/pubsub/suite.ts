/**
 * Pub/Sub: google.pubsub.v1.Publisher, Subscriber and SchemaService, case by case. Where documents disagree the case says which one it
 * follows, and why.
 */
import type { Suite } from '../case.ts';
import { deadLetters } from './cases/dead-letters.ts';
import { deadlines } from './cases/deadlines.ts';
import { detaching } from './cases/detaching.ts';
import { expiring } from './cases/expiring.ts';
import { exactlyOnce } from './cases/exactly-once.ts';
import { filters } from './cases/filters.ts';
import { limits } from './cases/limits.ts';
import { lists } from './cases/lists.ts';
import { malformed } from './cases/malformed.ts';
import { names } from './cases/names.ts';
import { namesAnew } from './cases/names-anew.ts';
import { ordering } from './cases/ordering.ts';
import { policies } from './cases/policies.ts';
import { publishing } from './cases/publish.ts';
import { pulling } from './cases/pulling.ts';
import { pushAnswers } from './cases/push-answers.ts';
import { pushForm } from './cases/push-form.ts';
import { pushTurning } from './cases/push-turning.ts';
import { replaying } from './cases/replaying.ts';
import { schemaRevisions } from './cases/schema-revisions.ts';
import { schemas } from './cases/schemas.ts';
import { topicSchemas } from './cases/topic-schemas.ts';
import { seeking } from './cases/seeking.ts';
import { snapshots } from './cases/snapshots.ts';
import { streamControl } from './cases/stream-control.ts';
import { streamFields } from './cases/stream-fields.ts';
import { streaming } from './cases/streaming.ts';
import { subscriptions } from './cases/subscriptions.ts';
import { topicSettings } from './cases/topic-settings.ts';
import { topics } from './cases/topics.ts';
import { unserved } from './cases/unserved.ts';
import { embeddedWorld, officialWorld, type PubsubWorld } from './world.ts';

export const pubsubSuite: Suite<PubsubWorld> = {
  service: 'Pub/Sub',
  cases: [
    ...topics,
    ...subscriptions,
    ...lists,
    ...names,
    ...namesAnew,
    ...malformed,
    ...limits,
    ...publishing,
    ...pulling,
    ...streaming,
    ...streamFields,
    ...streamControl,
    ...deadlines,
    ...ordering,
    ...exactlyOnce,
    ...deadLetters,
    ...filters,
    ...seeking,
    ...snapshots,
    ...expiring,
    ...replaying,
    ...detaching,
    ...pushForm,
    ...pushAnswers,
    ...pushTurning,
    ...schemas,
    ...schemaRevisions,
    ...topicSchemas,
    ...topicSettings,
    ...policies,
    ...unserved,
  ],
  embedded: embeddedWorld,
  official: officialWorld,
};
