/**
 * Enforces policies: refuses a call for which its caller has no permission, before anything of it is carried out. Only
 * policies of resources are known here. What is asked of a project, such as a list or a new topic, is permitted.
 */
import type { sendUnaryData, ServerDuplexStream, ServerUnaryCall, UntypedHandleCall } from '@grpc/grpc-js';
import { failStream, onFirstRequest } from '../faults/streams.ts';
import type { Intercept } from '../grpc-server.ts';
import { isPermitted } from './access.ts';
import type { IamPorts } from './methods.ts';

/** For each method the permissions that it needs, and the fields of its request that name the resources. */
export type Needs = Readonly<Record<string, readonly Need[]>>;
export type Need = Readonly<{ permission: string; path: string }>;

export const need = (permission: string, path: string): Need => ({ permission, path });

/** An error for a call that is not permitted. */
export type Check = (method: string, request: unknown) => Error | undefined;

export type CheckPorts = IamPorts &
  Readonly<{
    needs: Needs;
    /** The resource whose policy counts, for a name in a request; '' for none. */
    owner: (name: string, permission: string) => string;
    refusal: (permission: string, resource: string) => Error;
  }>;

export function checkCalls({ needs, policies, resource, caller, owner, refusal }: CheckPorts): Check {
  return (method, request) => {
    const member = caller();
    if (member === undefined) return undefined;
    for (const { permission, path } of needs[method] ?? []) {
      const name = owner(valueAt(request, path), permission);
      const holder = name === '' ? undefined : holderOf(() => resource(name).holder);
      // What is not there is for the method itself to say.
      if (holder !== undefined && !isPermitted(policies.get(holder), member, permission)) {
        return refusal(permission, name);
      }
    }
    return undefined;
  };
}

function holderOf(find: () => object): object | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

function valueAt(request: unknown, path: string): string {
  let value: unknown = request;
  for (const step of path.split('.')) {
    value = typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined;
  }
  return typeof value === 'string' ? value : '';
}

/** Around the handlers of a server; `inner` is what else stands around them. */
export function guardCalls(check: Check, inner?: Intercept): Intercept {
  return (name, definition, handler, cut) => {
    const guarded = definition.requestStream
      ? guardStream(check, name, handler)
      : guardUnary(check, name, handler);
    return inner === undefined ? guarded : inner(name, definition, guarded, cut);
  };
}

type UnaryHandler = (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => void;

function guardUnary(check: Check, name: string, plain: UntypedHandleCall): UntypedHandleCall {
  const handler = plain as UnaryHandler;
  return (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>): void => {
    const refused = check(name, call.request);
    if (refused === undefined) handler(call, callback);
    else callback(refused);
  };
}

/** What a stream is about stands in its first request. */
function guardStream(check: Check, name: string, plain: UntypedHandleCall): UntypedHandleCall {
  const handler = plain as (call: ServerDuplexStream<unknown, unknown>) => void;
  return (call: ServerDuplexStream<unknown, unknown>): void => {
    onFirstRequest(call, (request, goOn) => {
      const refused = check(name, request);
      if (refused === undefined) goOn(() => handler(call));
      else failStream(call, refused);
    });
  };
}
