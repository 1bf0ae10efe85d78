/**
 * The binary form of a message. The service is stricter than readers of Protocol Buffers are: a field number that the
 * message does not have, or has with another wire type, is refused (docs/decisions/0052). So each tag is looked at here;
 * `protobufjs` reads what is behind it, and has the last word on required fields.
 */
import protobuf from 'protobufjs';

/** Wire types: https://protobuf.dev/programming-guides/encoding#structure */
const LENGTH = 2;
const GROUP = 3;
const END_GROUP = 4;
/** As Google's own readers have it. */
const MAX_DEPTH = 100;

type Known = Readonly<{ name: string; wire: number; packable: boolean; inside?: Fields; isText: boolean }>;
type Fields = (id: number) => Known | undefined;

export function wireViolation(type: protobuf.Type, data: Buffer): string | undefined {
  try {
    const reader = protobuf.Reader.create(data);
    readFields(reader, fieldsOf(type), data.length, 0);
    type.decode(data);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Of a message up to `end`, or of a group up to its end tag. */
function readFields(reader: protobuf.Reader, fields: Fields, end: number, depth: number, group = 0): void {
  if (depth > MAX_DEPTH) throw new Error(`messages are nested more than ${MAX_DEPTH} deep`);
  while (reader.pos < end) {
    const tag = reader.uint32();
    const [id, wire] = [tag >>> 3, tag & 7];
    if (wire === END_GROUP && group !== 0 && id === group) return;
    const known = fields(id);
    if (known === undefined) throw new Error(`the message has an unknown field, number ${id}`);
    if (wire !== known.wire && !(known.packable && wire === LENGTH)) {
      throw new Error(`the field ${known.name}, number ${id}, has the wire type ${wire}`);
    }
    if (wire === GROUP && known.inside) readFields(reader, known.inside, end, depth + 1, id);
    else if (wire !== LENGTH) reader.skipType(wire);
    else readLength(reader, known, end, depth);
  }
  if (reader.pos > end) throw new Error('a field ends behind its message');
  if (group !== 0) throw new Error('a group has no end');
}

function readLength(reader: protobuf.Reader, known: Known, end: number, depth: number): void {
  const length = reader.uint32();
  const last = reader.pos + length;
  if (last > end) throw new Error(`the field ${known.name} ends behind its message`);
  if (known.inside) return readFields(reader, known.inside, last, depth + 1);
  if (known.isText) new TextDecoder('utf-8', { fatal: true }).decode(reader.buf.subarray(reader.pos, last));
  if (known.packable) {
    while (reader.pos < last) reader.skipType(known.wire);
    if (reader.pos > last) throw new Error(`the field ${known.name} has a value that is cut off`);
    return;
  }
  reader.skip(length);
}

const fieldsOf =
  (type: protobuf.Type): Fields =>
  (id) => {
    const field = type.fieldsById[id];
    return field === undefined ? undefined : knownOf(field.resolve());
  };

function knownOf(field: protobuf.Field): Known {
  const { name, type, resolvedType } = field;
  if (field instanceof protobuf.MapField)
    return { ...plain(name, 'bytes'), isText: false, inside: entryOf(field) };
  if (resolvedType instanceof protobuf.Type) {
    const isGroup = field.delimited;
    const inside = fieldsOf(resolvedType);
    return { name, wire: isGroup ? GROUP : LENGTH, packable: false, inside, isText: false };
  }
  const known = plain(name, resolvedType instanceof protobuf.Enum ? 'int32' : type);
  return { ...known, packable: field.repeated && known.wire !== LENGTH };
}

/** A map is a list of messages: the key is field 1, the value field 2. */
function entryOf(map: protobuf.MapField): Fields {
  const value = new protobuf.Field('value', 2, map.type);
  value.resolvedType = map.resolvedType;
  value.resolved = true;
  return (id) => (id === 1 ? plain('key', map.keyType) : id === 2 ? knownOf(value) : undefined);
}

const plain = (name: string, type: string): Known => ({
  name,
  wire: protobuf.types.basic[type as keyof typeof protobuf.types.basic],
  packable: false,
  isText: type === 'string',
});
