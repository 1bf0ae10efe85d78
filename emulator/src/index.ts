/** The local stack's servers, for use inside tests. */
export { type Cancel, type Clock, systemClock } from './clock.ts';
export { type RunningServer } from './grpc-server.ts';
