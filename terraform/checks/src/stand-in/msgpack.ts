/**
 * Reading the MessagePack that Terraform sends its values in. A value that is not known yet, an extension there, is
 * `UNKNOWN`.
 */
export const UNKNOWN = Symbol('unknown');

export type Value = null | boolean | number | string | typeof UNKNOWN | readonly Value[] | ValueMap;
export type ValueMap = Readonly<{ [name: string]: Value }>;

/** Throws RangeError for bytes that end early, and Error for a kind that Terraform does not send. */
export function decode(bytes: Buffer): Value {
  let at = 0;
  const take = (count: number): number => {
    const from = at;
    at += count;
    if (at > bytes.length) throw new RangeError('the value ends early');
    return from;
  };
  const uint = (size: number): number => bytes.readUIntBE(take(size), size);
  const text = (size: number): string => bytes.toString('utf8', take(size), at);
  const list = (size: number): Value[] => Array.from({ length: size }, () => read());
  const map = (size: number): ValueMap =>
    Object.fromEntries(Array.from({ length: size }, () => [name(), read()] as const));
  const name = (): string => {
    const value = read();
    if (typeof value !== 'string') throw new Error('a name that is not a text');
    return value;
  };
  const extension = (size: number): Value => {
    take(size + 1);
    return UNKNOWN;
  };

  const KINDS: Readonly<Record<number, () => Value>> = {
    0xc0: () => null,
    0xc2: () => false,
    0xc3: () => true,
    0xc7: () => extension(uint(1)),
    0xca: () => bytes.readFloatBE(take(4)),
    0xcb: () => bytes.readDoubleBE(take(8)),
    0xcc: () => uint(1),
    0xcd: () => uint(2),
    0xce: () => uint(4),
    0xcf: () => Number(bytes.readBigUInt64BE(take(8))),
    0xd0: () => bytes.readInt8(take(1)),
    0xd1: () => bytes.readInt16BE(take(2)),
    0xd2: () => bytes.readInt32BE(take(4)),
    0xd3: () => Number(bytes.readBigInt64BE(take(8))),
    0xd4: () => extension(1),
    0xd9: () => text(uint(1)),
    0xda: () => text(uint(2)),
    0xdb: () => text(uint(4)),
    0xdc: () => list(uint(2)),
    0xdd: () => list(uint(4)),
    0xde: () => map(uint(2)),
    0xdf: () => map(uint(4)),
  };

  function read(): Value {
    const head = uint(1);
    if (head < 0x80) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head < 0x90) return map(head & 0x0f);
    if (head < 0xa0) return list(head & 0x0f);
    if (head < 0xc0) return text(head & 0x1f);
    const kind = KINDS[head];
    if (kind === undefined) throw new Error(`a value of kind 0x${head.toString(16)}, which is not read here`);
    return kind();
  }

  return read();
}

/** The other way round, in the fewest kinds that can say everything. */
export function encode(value: Value): Buffer {
  if (value === null) return Buffer.from([0xc0]);
  if (value === UNKNOWN) return Buffer.from([0xd4, 0x00, 0x00]);
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2]);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(9, 0xcb);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    return Buffer.concat([head(0xdb, bytes.length), bytes]);
  }
  if (isList(value)) return Buffer.concat([head(0xdd, value.length), ...value.map(encode)]);
  const entries = Object.entries(value as ValueMap);
  return Buffer.concat([
    head(0xdf, entries.length),
    ...entries.flatMap(([name, inner]) => [encode(name), encode(inner)]),
  ]);
}

const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

function head(kind: number, size: number): Buffer {
  const bytes = Buffer.alloc(5, kind);
  bytes.writeUInt32BE(size, 1);
  return bytes;
}
