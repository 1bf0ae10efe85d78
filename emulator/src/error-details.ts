/**
 * What Google's APIs add to an error: messages of google.rpc, which gRPC carries in a trailer that the client libraries
 * read, and REST as `error.details` (https://cloud.google.com/apis/design/errors#error_model).
 */
import { Metadata } from '@grpc/grpc-js';
import { StatusError } from './grpc-server.ts';

/** A link that a google.rpc.Help gives. */
export type HelpLink = Readonly<{ description: string; url: string }>;

/** A status with a google.rpc.Help. */
export class HelpError extends StatusError {
  readonly metadata = new Metadata();
  /** As REST shows them. */
  readonly restDetails: readonly object[];
  constructor(code: number, message: string, links: readonly HelpLink[]) {
    super(code, message);
    this.name = 'HelpError';
    this.restDetails = [{ '@type': HELP, links }];
    const help = links.map(({ description, url }) => field(1, [field(1, description), field(2, url)]));
    this.metadata.set(DETAILS, statusDetails(code, message, HELP, help));
  }
}

/** A status with a google.rpc.ErrorInfo: `reason` in capitals, `domain` the service's own name. */
export class ErrorInfo extends StatusError {
  readonly metadata = new Metadata();
  /** As REST shows them. */
  readonly restDetails: readonly object[];
  constructor(
    code: number,
    message: string,
    reason: string,
    domain: string,
    facts: Readonly<Record<string, string>>,
  ) {
    super(code, message);
    this.name = 'ErrorInfo';
    this.restDetails = [{ '@type': ERROR_INFO, reason, domain, metadata: facts }];
    const entries = Object.entries(facts).map(([key, value]) => field(3, [field(1, key), field(2, value)]));
    const info = [field(1, reason), field(2, domain), ...entries];
    this.metadata.set(DETAILS, statusDetails(code, message, ERROR_INFO, info));
  }
}

/** The trailer with the details of a status. */
export const DETAILS = 'grpc-status-details-bin';

const HELP = 'type.googleapis.com/google.rpc.Help';
const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';

/** A google.rpc.Status with one message of this type, whose fields are given (google/rpc/status.proto). */
export function statusDetails(
  code: number,
  message: string,
  type: string,
  fields: readonly Buffer[],
): Buffer {
  const any = [field(1, type), field(2, fields)];
  return Buffer.concat([Buffer.from([0x08, code]), field(2, message), field(3, any)]);
}

/** A length-delimited field of the protobuf wire format. */
export function field(number: number, content: string | readonly Buffer[]): Buffer {
  const value = typeof content === 'string' ? Buffer.from(content) : Buffer.concat(content);
  const length: number[] = [];
  let rest = value.length;
  for (; rest > 0x7f; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, rest]), value]);
}
