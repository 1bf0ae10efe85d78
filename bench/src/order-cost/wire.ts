/**
 * The two envelopes of a gRPC call: messages in a stream of bytes, and the top-level fields of a protobuf message.
 * Throws for what it does not understand; nothing is skipped in silence.
 */
export type Field = Readonly<{ number: number; value: Buffer }>;

const PREFIX_BYTES = 5;

/** Feed it what arrives, in its order; it answers the messages that are complete: https://grpc.github.io/grpc/core/md_doc__p_r_o_t_o_c_o_l-_h_t_t_p2.html */
export function messagesOf(): (bytes: Buffer) => readonly Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    const messages: Buffer[] = [];
    while (rest.length >= PREFIX_BYTES) {
      if (rest[0] !== 0) throw new Error('a compressed message');
      const end = PREFIX_BYTES + rest.readUInt32BE(1);
      if (rest.length < end) break;
      messages.push(rest.subarray(PREFIX_BYTES, end));
      rest = rest.subarray(end);
    }
    return messages;
  };
}

/** `value` has the field's own bytes; of a number it has those of its varint. */
export function* fieldsIn(message: Buffer): Generator<Field> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++];
      if (byte === undefined || shift > 63) throw new Error('a message that ends too early');
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const kind = tag % 8;
    const begin = at;
    const length = lengthOf(kind, varint);
    const from = kind === 0 ? begin : at;
    at = kind === 0 ? at : at + length;
    if (at > message.length) throw new Error('a message that ends too early');
    yield { number: Math.floor(tag / 8), value: message.subarray(from, at) };
  }
}

/** By wire type: https://protobuf.dev/programming-guides/encoding/#structure */
function lengthOf(kind: number, varint: () => number): number {
  switch (kind) {
    case 0:
    case 2:
      return varint();
    case 1:
      return 8;
    case 5:
      return 4;
    default:
      throw new Error(`wire type ${kind}`);
  }
}
