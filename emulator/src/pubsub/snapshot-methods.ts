/** The methods of google.pubsub.v1.Subscriber about snapshots and seeking. */
import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { invalidArgument } from '../grpc-server.ts';
import { assertLabels } from './labels.ts';
import { unary, type Log } from './methods.ts';
import { assertName, generatedName, projectOf, projectPrefix } from './names.ts';
import { page } from './paging.ts';
import { assertAttached } from './pull.ts';
import { maskedFields, refuseSet, snakeCase } from './refuse.ts';
import type { Registry } from './registry.ts';
import { seek, type SeekRequest } from './seek.ts';
import type { FieldMask, Paging, Snapshot } from './wire.ts';

type CreateSnapshot = Readonly<{ name: string; subscription: string; labels: Snapshot['labels'] }>;
type Update = Readonly<{ snapshot: Snapshot | null; updateMask: FieldMask | null }>;

export function snapshotMethods(registry: Registry, log: Log): UntypedServiceImplementation {
  const { snapshots } = registry;
  return {
    Seek: unary(log, (request: SeekRequest) => {
      seek(registry, request);
      return {};
    }),
    CreateSnapshot: unary(log, (request: CreateSnapshot) => {
      refuseSet('snapshot', request, ['tags']);
      const { delivery, config, expiration } = registry.subscription(request.subscription);
      const given = request.name || generatedName('snapshots', projectOf(request.subscription));
      assertName('snapshots', given);
      assertLabels(request.labels);
      assertAttached(config());
      const made = snapshots.create(given, config().topic, request.labels, delivery.unacked());
      expiration.used();
      return made;
    }),
    GetSnapshot: unary(log, ({ snapshot }: { snapshot: string }) => snapshots.get(snapshot)),
    UpdateSnapshot: unary(log, ({ snapshot, updateMask }: Update) => {
      if (snapshot === null) throw invalidArgument('The UpdateSnapshotRequest names no snapshot.');
      for (const field of maskedFields(updateMask, 'UpdateSnapshotRequest')) {
        if (field !== 'labels') {
          throw invalidArgument(
            `Invalid update_mask provided in the UpdateSnapshotRequest: '${snakeCase(field)}' cannot be updated.`,
          );
        }
      }
      assertLabels(snapshot.labels);
      return snapshots.replace({ ...snapshots.get(snapshot.name), labels: snapshot.labels });
    }),
    DeleteSnapshot: unary(log, ({ snapshot }: { snapshot: string }) => {
      snapshots.remove(snapshot);
      return {};
    }),
    ListSnapshots: unary(log, (request: Paging & { project: string }) => {
      const prefix = projectPrefix(request.project, 'snapshots');
      const own = snapshots.list().filter(({ name }) => name.startsWith(prefix));
      const { names, nextPageToken } = page(
        own.map(({ name }) => name),
        request,
      );
      return { snapshots: names.map((name) => snapshots.get(name)), nextPageToken };
    }),
  };
}
