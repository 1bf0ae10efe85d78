/**
 * Acknowledgements and deadlines that faults throw away, although they are answered OK. An exactly-once subscription
 * promises with its answer that the acknowledgement counts: there, and for a subscription that does not exist, nothing is
 * thrown away.
 */
import type { Faults } from '../faults/faults.ts';
import type { SkipCall } from '../faults/rpc.ts';
import type { SubscriptionState } from './subscription-state.ts';

/** Whether what a request of this method asks for is to be thrown away. */
export type DropsAck = (method: 'Acknowledge' | 'ModifyAckDeadline', subscription: string) => boolean;

/** The subscription of that name; undefined where there is none. */
type Find = (name: string) => SubscriptionState | undefined;

export function skipDropAck(find: Find): SkipCall {
  return ({ type }, subscription) => {
    if (type !== 'drop-ack') return undefined;
    const state = find(subscription);
    if (state === undefined) return 'there is no such subscription';
    return state.config().enableExactlyOnceDelivery
      ? 'exactly-once delivery confirms what it has done'
      : undefined;
  };
}

/** For what comes on a stream, and counts as a call of the method all the same: only such rules are about it. */
export function dropsAck(faults: Faults | undefined, find: Find): DropsAck {
  if (faults === undefined) return () => false;
  const skipFor = skipDropAck(find);
  return (method, subscription) =>
    faults.concern('pubsub', method) &&
    faults.decide('pubsub', method, subscription, {
      only: 'drop-ack',
      skip: (action) => skipFor(action, subscription),
    }) !== undefined;
}
