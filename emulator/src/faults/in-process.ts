/**
 * Faults of calls that are made within this process, as the REST form of a service does: the same rules and the same
 * counts as over gRPC. There is no connection to break; a call that would lose it is answered UNAVAILABLE.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Faults } from './faults.ts';
import { brokenOff, lostReply, refusal } from './injected-error.ts';
import { METHODS, resourceOf } from './methods.ts';
import type { Service } from './plan.ts';

type Call = (rpc: string, request: object) => Promise<object>;

/** `isDown`: whether the service is between the two halves of a restart. */
export function inProcessFaults(
  faults: Faults | undefined,
  service: Service,
  isDown: () => boolean,
  call: Call,
): Call {
  if (faults === undefined) return call;
  return async (rpc, request) => {
    if (isDown()) throw brokenOff();
    const method = METHODS[service][rpc];
    const fault =
      method !== undefined && faults.concern(service, rpc)
        ? faults.decide(service, rpc, resourceOf(method, request))
        : undefined;
    if (fault === undefined) return call(rpc, request);
    const { action } = fault;
    switch (action.type) {
      case 'fail':
        throw refusal(fault, action);
      case 'lose-reply':
        await call(rpc, request);
        throw lostReply(fault, action);
      case 'delay':
        await wait(action.ms);
        return call(rpc, request);
      case 'cut':
        if (action.when === 'after') await call(rpc, request);
        throw brokenOff();
      case 'restart':
        void faults.restartDecided(service, { state: action.state, downMs: action.downMs ?? 0 });
        throw brokenOff();
      case 'drop-ack':
      case 'duplicate':
      case 'lose':
      case 'reorder':
        return call(rpc, request);
    }
  };
}
