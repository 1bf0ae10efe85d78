/**
 * Avro schemas, judged by `avsc`: what a definition is, which bytes follow it, and which revisions can read each other
 * (https://avro.apache.org/docs/1.11.1/specification/#schema-resolution).
 */
import { createRequire } from 'node:module';
import type avsc from 'avsc';
import { jsonViolation } from './avro-json.ts';
import type { Judge, Language } from './language.ts';

export const avro: Language = {
  parse(definition): Judge {
    const type = typeOf(definition);
    return {
      violation: (encoding, data) =>
        encoding === 'JSON' ? jsonViolation(type, data) : binaryViolation(type, data),
    };
  },
  conflict(newer, older) {
    const [next, previous] = [typeOf(newer), typeOf(older)];
    return unreadable(next, previous) ?? unreadable(previous, next);
  },
};

type Avsc = typeof avsc;
type Loaded = Readonly<{ Type: Avsc['Type']; long: avsc.Type }>;

let loaded: Loaded | undefined;

/** For the first schema: loading it takes longer than starting a server, and most servers have none. */
function load(): Loaded {
  if (loaded === undefined) {
    const { Type, types } = createRequire(import.meta.url)('avsc') as Avsc;
    loaded = { Type, long: longOf(types) };
  }
  return loaded;
}

function typeOf(definition: string): avsc.Type {
  const schema = JSON.parse(definition) as unknown;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new Error('an Avro schema is a JSON object that defines one type');
  }
  const { Type, long } = load();
  const options = { registry: { long }, wrapUnions: 'always', omitRecordMethods: true } as const;
  return Type.forSchema(schema as avsc.schema.AvroSchema, options);
}

/** Of 64 bits: without this one avsc refuses what a number of JavaScript cannot hold. */
const longOf = ({ LongType }: Avsc['types']): avsc.Type =>
  LongType.__with({
    fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
    toBuffer(value: bigint) {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(value);
      return bytes;
    },
    fromJSON: BigInt,
    toJSON: Number,
    isValid: (value: unknown) => typeof value === 'bigint',
    compare: (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0),
  });

function binaryViolation(type: avsc.Type, data: Buffer): string | undefined {
  try {
    type.fromBuffer(data);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    // Recorded from the service: https://github.com/googleapis/google-cloud-php/issues/6463
    return message === 'trailing data' ? 'Too much data to parse for schema.' : message;
  }
}

function unreadable(reader: avsc.Type, writer: avsc.Type): string | undefined {
  try {
    reader.createResolver(writer);
    return undefined;
  } catch (error) {
    return `${(error as Error).message.replace(/\s+/g, ' ')}.`;
  }
}
