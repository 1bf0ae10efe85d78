/** The service definitions of google.pubsub.v1, from the protos that the vendor's packages ship. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadServices } from '../grpc-server.ts';

export type PubsubServices = Readonly<{
  publisher: ServiceDefinition;
  subscriber: ServiceDefinition;
  schemaService: ServiceDefinition;
  /** google.iam.v1, which Pub/Sub has beside its own. */
  iamPolicy: ServiceDefinition;
}>;

let loaded: PubsubServices | undefined;

/** Read once and kept: reading takes longer than starting a server. Throws when one of the packages cannot be found. */
export function pubsubServiceDefinitions(): PubsubServices {
  loaded ??= load();
  return loaded;
}

function load(): PubsubServices {
  const services = loadServices('google/pubsub/v1/pubsub.proto', pubsubProtoDirs(), [
    'google.pubsub.v1.Publisher',
    'google.pubsub.v1.Subscriber',
    'google.pubsub.v1.SchemaService',
  ]);
  const iam = loadServices('google/iam/v1/iam_policy.proto', pubsubProtoDirs(), ['google.iam.v1.IAMPolicy']);
  return {
    publisher: services['google.pubsub.v1.Publisher'],
    subscriber: services['google.pubsub.v1.Subscriber'],
    schemaService: services['google.pubsub.v1.SchemaService'],
    iamPolicy: iam['google.iam.v1.IAMPolicy'],
  };
}

/** Where the protos lie that the vendor's packages ship, each with a `google` folder. Throws as above. */
function pubsubProtoDirs(): readonly string[] {
  const { resolve } = createRequire(import.meta.url);
  const own = join(dirname(resolve('@google-cloud/pubsub/package.json')), 'build', 'protos');
  // google-gax exports no path but its main module, which lies somewhere below `build`.
  const main = resolve('google-gax');
  const build = main.slice(
    0,
    main.lastIndexOf(join('google-gax', 'build')) + join('google-gax', 'build').length,
  );
  return [own, join(build, 'protos')];
}
