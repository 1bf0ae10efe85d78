/** google.iam.v1.IAMPolicy, which Pub/Sub has for topics, subscriptions, snapshots and schemas. */
import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { iamMethods, type IamPorts } from '../iam/methods.ts';
import { unary, type Log } from './methods.ts';

export function policyMethods(iam: IamPorts, log: Log): UntypedServiceImplementation {
  const { getIamPolicy, setIamPolicy, testIamPermissions } = iamMethods(iam);
  return {
    GetIamPolicy: unary(log, getIamPolicy),
    SetIamPolicy: unary(log, setIamPolicy),
    TestIamPermissions: unary(log, testIamPermissions),
  };
}
