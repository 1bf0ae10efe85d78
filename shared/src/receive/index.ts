/** `pubsub-guarantees/receive`: from a request to an outcome, and what is in flight. Pull subscribers are under `/receive/pubsub`. */
export { type BytesInFlight, bytesFor, bytesInFlight, payloadsThatFit } from './bytes-in-flight.ts';
export { type DeliverOptions, deliver } from './deliver.ts';
export { type HttpDoorOptions, type HttpRequest, type HttpResponse, httpDoor } from './http-door.ts';
export { settle } from './settle.ts';
