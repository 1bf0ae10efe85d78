/**
 * Faults of RPCs: sits around each handler of a gRPC server. Without a rule about the method a call goes straight through.
 *
 * A delay is real time, and the request is carried out after it even when its client has ended it meanwhile, as one that
 * was late on the network. A connection is destroyed with all the calls on it.
 */
import type {
  sendUnaryData,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedHandleCall,
} from '@grpc/grpc-js';
import type { Intercept } from '../grpc-server.ts';
import type { Fault, Faults } from './faults.ts';
import { brokenOff, lostReply, refusal } from './injected-error.ts';
import { type Method, METHODS, resourceOf } from './methods.ts';
import type { Action, Service } from './plan.ts';
import { cutAfter, failStream, loseEnd, onFirstRequest } from './streams.ts';

type UnaryCall = ServerUnaryCall<unknown, unknown>;
type UnaryHandler = (call: UnaryCall, callback: sendUnaryData<unknown>) => void;
type Stream = ServerWritableStream<unknown, unknown>;
type Duplex = ServerDuplexStream<unknown, unknown>;

/** Why a service does not do this to a call, if so. */
export type SkipCall = (action: Action, resource: string) => string | undefined;

type Site = Readonly<{
  faults: Faults;
  service: Service;
  name: string;
  method: Method;
  cut: (peer: string) => void;
  decide: (request: unknown) => Fault | undefined;
}>;

export function rpcFaults(faults: Faults, service: Service, skip?: SkipCall): Intercept {
  return (name, { requestStream, responseStream }, handler, cut) => {
    const method = METHODS[service][name];
    if (method === undefined) return handler;
    const decide = (request: unknown): Fault | undefined => {
      const resource = resourceOf(method, request);
      return faults.decide(service, name, resource, skip && { skip: (action) => skip(action, resource) });
    };
    const site: Site = { faults, service, name, method, cut, decide };
    if (requestStream) return duplex(site, handler);
    return responseStream ? serverStream(site, handler) : unary(site, handler);
  };
}

function unary(site: Site, plain: UntypedHandleCall): UntypedHandleCall {
  const { faults, service, name, cut, decide } = site;
  const handler = plain as UnaryHandler;
  return (call: UnaryCall, callback: sendUnaryData<unknown>): void => {
    const fault = faults.concern(service, name) ? decide(call.request) : undefined;
    if (fault === undefined) return handler(call, callback);
    const { action } = fault;
    const breakOff = (): void => {
      cut(call.getPeer());
      callback(brokenOff());
    };
    switch (action.type) {
      case 'fail':
        return callback(refusal(fault, action));
      case 'lose-reply':
        return handler(call, () => callback(lostReply(fault, action)));
      case 'delay':
        return void setTimeout(() => handler(call, callback), action.ms);
      case 'cut':
        return action.when === 'after' ? handler(call, breakOff) : breakOff();
      case 'drop-ack':
        return callback(null, {});
      case 'duplicate':
        // As by a client that had no answer to the first: it hears of the second.
        return handler(call, () => handler(call, callback));
      case 'restart':
        breakOff();
        return restart(site, action);
      case 'lose':
      case 'reorder':
        return handler(call, callback);
    }
  };
}

function serverStream(site: Site, plain: UntypedHandleCall): UntypedHandleCall {
  const { faults, service, name, decide } = site;
  const handler = plain as (call: Stream) => void;
  return (call: Stream): void => {
    const fault = faults.concern(service, name) ? decide(call.request) : undefined;
    if (fault === undefined) return handler(call);
    disturb(site, fault, call, () => handler(call));
  };
}

/** What a stream is about stands in its first request, which is handed on when it is decided. */
function duplex(site: Site, plain: UntypedHandleCall): UntypedHandleCall {
  const { faults, service, name, decide } = site;
  const handler = plain as (call: Duplex) => void;
  return (call: Duplex): void => {
    if (!faults.concern(service, name)) return handler(call);
    onFirstRequest(call, (request, goOn) => {
      const run = (): void => goOn(() => handler(call));
      const fault = decide(request);
      if (fault === undefined) run();
      else disturb(site, fault, call, run);
    });
  };
}

function disturb(site: Site, fault: Fault, call: Stream | Duplex, run: () => void): void {
  const { action } = fault;
  const breakOff = (): void => {
    site.cut(call.getPeer());
  };
  switch (action.type) {
    case 'fail':
      return failStream(call, refusal(fault, action));
    case 'lose-reply':
      loseEnd(call, lostReply(fault, action));
      return run();
    case 'delay':
      return void setTimeout(() => {
        if (!call.cancelled) run();
      }, action.ms);
    case 'cut':
      if (!action.afterMessages) return breakOff();
      cutAfter(call, action.afterMessages, breakOff);
      return run();
    case 'restart':
      breakOff();
      return restart(site, action);
    case 'drop-ack':
    case 'duplicate':
    case 'lose':
    case 'reorder':
      return run();
  }
}

function restart(
  { faults, service }: Site,
  { state, downMs = 0 }: Extract<Action, { type: 'restart' }>,
): void {
  void faults.restartDecided(service, { state, downMs });
}
