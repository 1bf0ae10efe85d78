/**
 * Paths of Google's REST APIs that this stack does not serve: those of a service that was not chosen, and methods that
 * gRPC alone has here. The latter are answered UNIMPLEMENTED and counted, as over gRPC.
 */
import { unimplemented } from '../grpc-server.ts';
import { type RestAnswer, restError } from '../rest-error.ts';
import { countUnimplemented, type Unimplemented } from '../unimplemented.ts';
import type { Servers } from './servers.ts';
import { type Service, SERVICES, TITLE } from './services.ts';

export type NotServed = Readonly<{
  /** Undefined for a path of none of the services. */
  answer(servers: Servers, method: string, path: string): RestAnswer | undefined;
  /** By method and path, as in `DELETE /v1/projects/…/topics/…`. */
  counts(service: Service): Readonly<Record<string, number>>;
}>;

const WHOSE: readonly (readonly [Service, RegExp])[] = [
  ['firestore', /^\/v1(?:beta1)?\/projects\/[^/]+\/databases(?:\/|$)/],
  ['pubsub', /^\/v1\/projects\//],
  ['tasks', /^\/v2(?:beta[23])?\/projects\//],
];

const SERVED: Readonly<Record<Service, string>> = {
  pubsub:
    'POST topics/…:publish, subscriptions/…:pull, :acknowledge and :modifyAckDeadline are. A client library reaches the rest over gRPC.',
  firestore: 'nothing of Firestore is. A client library reaches it over gRPC.',
  tasks: 'what is below /v2/projects/…/locations/…/queues is.',
};

export function notServed(): NotServed {
  const missing = Object.fromEntries(SERVICES.map((service) => [service, countUnimplemented()])) as Readonly<
    Record<Service, Unimplemented>
  >;
  return {
    answer(servers, method, path) {
      const [service] = WHOSE.find(([, form]) => form.test(path)) ?? [];
      if (service === undefined) return undefined;
      if (servers[service] === undefined) {
        return { status: 404, body: { error: `no path ${path}: this stack does not run ${TITLE[service]}` } };
      }
      missing[service].count(`${method} ${withoutNames(path)}`);
      return restError(unimplemented(`${method} ${path} is not served here over REST; ${SERVED[service]}`));
    },
    counts: (service) => missing[service].counts(),
  };
}

/** Every second part is a name: what was missed is the same for all of them. */
const withoutNames = (path: string): string => path.replaceAll(/(\/(?!v\d)[^/:]+)\/[^/:]+/g, '$1/…');
