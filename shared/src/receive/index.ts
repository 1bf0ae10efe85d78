/** `pubsub-guarantees/receive`: from a request to an outcome, and what is in flight. Pull subscribers are under `/receive/pubsub`. */
export { type BytesInFlight, bytesFor, bytesInFlight, payloadsThatFit } from './bytes-in-flight.ts';
export { type DeliverOptions, deliver } from './deliver.ts';
export {
  type HttpEndpointOptions,
  type HttpRequest,
  type HttpResponse,
  httpEndpoint,
} from './http-endpoint.ts';
export { settle } from './settle.ts';
