/**
 * Finds fields that the protos of this server do not know. Decoding drops them without a word, so a newer client could
 * ask for something (an HTTP target of a queue, say) and believe that it has it.
 */

/** The known fields of a message by number: a nested message, or `true` for a field that is not looked into. */
type Known = Readonly<{ [field: number]: Known | true }>;

const fields = (count: number): Known =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [index + 1, true] as const));

/** google/cloud/tasks/v2, as in @google-cloud/tasks 7.1.0. */
const QUEUE: Known = {
  ...fields(6),
  2: fields(4), // app_engine_routing_override
  3: fields(3), // rate_limits
  4: fields(5), // retry_config
  9: fields(1), // stackdriver_logging_config
};
const TASK: Known = {
  ...fields(11),
  2: { ...fields(5), 2: fields(4) }, // app_engine_http_request
  3: { ...fields(6), 5: fields(2), 6: fields(2) }, // http_request, its oauth_token and oidc_token
};

export const CREATE_QUEUE_FIELDS: Known = { 1: true, 2: QUEUE };
export const UPDATE_QUEUE_FIELDS: Known = { 1: QUEUE, 2: true };
export const CREATE_TASK_FIELDS: Known = { 1: true, 2: TASK, 3: true };

/** The path of the first unknown field, as in `2.17` for field 17 of field 2. Expects bytes that decode. */
export function unknownField(bytes: Uint8Array, known: Known): string | undefined {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = bytes[at] ?? 0;
      at += 1;
      value += (byte & 0x7f) * factor;
      factor *= 128;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    const wireType = tag % 8;
    const inner = known[field];
    if (inner === undefined) return String(field);
    if (wireType === 0) varint();
    else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else {
      const end = varint() + at;
      const found = inner === true ? undefined : unknownField(bytes.subarray(at, end), inner);
      if (found !== undefined) return `${field}.${found}`;
      at = end;
    }
  }
  return undefined;
}
