/** What the embedded server does not serve: it says so, and keeps nothing that it would not honour. */
import { openQueue, refused, section, type TasksCase } from '../section.ts';
import { METHODS, QUEUE } from '../sources.ts';

const of = section('Not served');

export const notServedCases: readonly TasksCase[] = [
  ...(['GetIamPolicy', 'SetIamPolicy', 'TestIamPermissions'] as const).map((rpc) =>
    of(`${rpc} is answered UNIMPLEMENTED`, METHODS, async (world) => {
      await openQueue(world);
      await refused(world.call(rpc, { resource: world.queue }), 'UNIMPLEMENTED');
    }),
  ),
  of('a queue that would log to Cloud Logging is refused: UNIMPLEMENTED', QUEUE, async (world) => {
    await refused(
      openQueue(world, { stackdriverLoggingConfig: { samplingRatio: 0.5 } }),
      'UNIMPLEMENTED',
      /stackdriver/,
    );
  }),
  of('an update of what a queue logs is refused: UNIMPLEMENTED', QUEUE, async (world) => {
    await openQueue(world);
    const paths = ['stackdriver_logging_config.sampling_ratio'];
    await refused(
      world.call('UpdateQueue', { queue: { name: world.queue }, updateMask: { paths } }),
      'UNIMPLEMENTED',
    );
  }),
  of('the locations of a project are answered UNIMPLEMENTED', METHODS, async (world) => {
    const listing = async (): Promise<void> => {
      for await (const _ of world.client().listLocationsAsync({ name: 'projects/demo-project' })) return;
    };
    await refused(listing(), 'UNIMPLEMENTED');
  }),
];
