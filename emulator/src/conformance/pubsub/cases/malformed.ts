/** Names that no resource can have, in the methods that look one up. */
import { of, refused, type PubsubCase } from '../expect.ts';
import { ERROR_CODES } from '../sources.ts';
import type { Fields } from '../world.ts';

const make = of('Malformed names');
const MALFORMED = 'orders';

const METHODS: readonly (readonly [string, Fields])[] = [
  ['GetTopic', { topic: MALFORMED }],
  ['UpdateTopic', { topic: { name: MALFORMED }, updateMask: { paths: ['message_retention_duration'] } }],
  ['DeleteTopic', { topic: MALFORMED }],
  ['Publish', { topic: MALFORMED, messages: [{ data: Buffer.from('a') }] }],
  ['ListTopics', { project: MALFORMED }],
  ['ListTopicSubscriptions', { topic: MALFORMED }],
  ['ListTopicSnapshots', { topic: MALFORMED }],
  ['DetachSubscription', { subscription: MALFORMED }],
  ['GetSubscription', { subscription: MALFORMED }],
  [
    'UpdateSubscription',
    {
      subscription: { name: MALFORMED, ackDeadlineSeconds: 30 },
      updateMask: { paths: ['ack_deadline_seconds'] },
    },
  ],
  ['DeleteSubscription', { subscription: MALFORMED }],
  ['ListSubscriptions', { project: MALFORMED }],
  ['ModifyAckDeadline', { subscription: MALFORMED, ackIds: ['x'], ackDeadlineSeconds: 10 }],
  ['Acknowledge', { subscription: MALFORMED, ackIds: ['x'] }],
  ['Pull', { subscription: MALFORMED, maxMessages: 1 }],
  ['ModifyPushConfig', { subscription: MALFORMED, pushConfig: {} }],
  ['Seek', { subscription: MALFORMED, time: { seconds: '1' } }],
  ['GetSnapshot', { snapshot: MALFORMED }],
  ['ListSnapshots', { project: MALFORMED }],
  ['CreateSnapshot', { name: 'projects/p/snapshots/snap', subscription: MALFORMED }],
  ['UpdateSnapshot', { snapshot: { name: MALFORMED }, updateMask: { paths: ['labels'] } }],
  ['DeleteSnapshot', { snapshot: MALFORMED }],
  ['GetSchema', { name: MALFORMED }],
  ['ListSchemas', { parent: MALFORMED }],
  ['ListSchemaRevisions', { name: MALFORMED }],
  ['DeleteSchema', { name: MALFORMED }],
];

export const malformed: readonly PubsubCase[] = METHODS.map(([method, request]) =>
  make(`${method} of "${MALFORMED}" without project and kind is INVALID_ARGUMENT`, ERROR_CODES, (world) =>
    refused(world.call(method, request), 'INVALID_ARGUMENT', method),
  ),
);
